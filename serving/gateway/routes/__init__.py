"""The routes, a file for each subject. Each has ``add(api, backend, limits)``; ``create_api`` calls them all."""
