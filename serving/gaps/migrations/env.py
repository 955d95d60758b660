"""What Alembic runs to bring a database up to date, on the connection and in the transaction that it is handed."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, render_as_batch=connection.dialect.name == "sqlite")
context.run_migrations()
