"""The application: its paths, its errors, and the page.

Annotations are evaluated here, not kept as text: FastAPI reads them, and one is made when the limits are known.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib.resources import files as package_files
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from pointing import __version__
from pointing.config import Search, checked
from pointing.errors import Misuse
from pointing.server import files, libretranslate
from pointing.server.answers import described, json_answer
from pointing.server.docs_page import docs_page
from pointing.server.guard import Guard
from pointing.server.limits import Limits, Refused, busy
from pointing.server.metrics import CONTENT_TYPE
from pointing.server.schema import PROBLEMS, SEARCH, generate_request
from pointing.server.service import Service
from pointing.server.words_of_errors import in_words

KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
LOCAL = ("localhost",)  # names that may be in a Host header beside IP addresses
ABOUT = "Texts in, texts out, and of every word where it came from."


def make_app(service: Service, hosts: Collection[str] = LOCAL, origins: Collection[str] = ()) -> ASGIApp:
    """All paths, with the guard around them."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.batcher.close()  # after the last answer

    app = FastAPI(
        title="pointing", version=__version__, description=ABOUT, docs_url=None, redoc_url=None, lifespan=life
    )
    _answer_errors(app)
    app.include_router(_own_paths(service))
    app.include_router(libretranslate.router(service))
    app.include_router(files.router(service))
    app.include_router(_page())

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(docs_page(app.openapi()))

    if origins:
        app.add_middleware(CORSMiddleware, allow_origins=list(origins), allow_methods=["*"], allow_headers=["*"])
    return Guard(app, service.limits, service.metrics, hosts, origins)


def _own_paths(service: Service) -> APIRouter:
    routes = APIRouter(tags=["pointing"])
    Generate = generate_request(service.limits, list(service.models.by_name))

    @routes.post("/generate", responses=PROBLEMS, response_model=dict[str, Any])
    async def generate(request: Request, body: Generate) -> Response:  # type: ignore[valid-type]
        """Outputs of a text or several, with the origin of every word: what `pointing generate --json` prints."""
        service.keys.check(request)
        asked: Any = body
        model = service.models.named(asked.run)
        texts = [asked.text] if isinstance(asked.text, str) else asked.text
        if (asked.locations or asked.choices) and len(texts) * asked.nbest > service.limits.detailed:
            raise Refused(422, f"locations and choices: of at most {service.limits.detailed} outputs, texts × nbest")
        try:
            settings = checked(
                Search, {name: getattr(asked, name) for name in SEARCH if name in asked.model_fields_set}
            )
            glossary = await service.glossary(model, asked.glossary, asked.keep, asked.glossary_mode)
            outputs = await service.outputs(
                model,
                texts,
                settings,
                glossary,
                locations=asked.locations,
                choices=asked.choices,
                min_confidence=asked.min_confidence,
            )
        except Misuse as error:
            raise Refused(422, str(error)) from None

        def answer() -> dict[str, Any]:
            answers = [{**described(output), "line": number} for number, output in enumerate(outputs, 1)]
            return {"run": model.name, "outputs": answers}

        return await json_answer(answer)

    few: dict[int | str, dict[str, Any]] = {status: PROBLEMS[status] for status in (401, 403, 421, 429)}

    @routes.get("/model", responses=few)
    async def model(request: Request) -> dict[str, Any]:
        """The runs that are served: languages, vocabularies, how they were trained, their scores with signatures."""
        service.keys.check(request)
        models = service.models.by_name.values()
        described = await run_in_threadpool(lambda: [model.json() for model in models])  # which may read their corpora
        return {"version": __version__, "limits": _limits(service.limits), "models": described}

    @routes.get("/health", responses={status: PROBLEMS[status] for status in (403, 421, 503)})
    async def health() -> dict[str, str]:
        """Whether texts are decoded."""
        if not service.batcher.is_alive:
            raise busy("the server is stopping", 5)
        return {"status": "ok"}

    @routes.get("/metrics", responses={**few, 200: {"content": {CONTENT_TYPE: {}}}}, response_class=Response)
    async def metrics(request: Request) -> Response:
        """Counters for Prometheus."""
        service.keys.check(request)
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    return routes


def _limits(limits: Limits) -> dict[str, int]:
    names = "texts", "characters", "beam", "terms", "choices", "detailed"
    return {**{name: getattr(limits, name) for name in names}, "file_bytes": limits.body}


def _page() -> APIRouter:
    """The page's own files, read once; there is no other name that could lead to a file."""
    routes = APIRouter()
    folder = package_files("pointing.server") / "page"
    found = {path.name: path.read_bytes() for path in folder.iterdir() if "." + path.name.rpartition(".")[2] in KINDS}

    @routes.get("/", include_in_schema=False)
    async def page() -> Response:
        return Response(found["index.html"], media_type="text/html")

    @routes.get("/page/{name}", include_in_schema=False)
    async def file(name: str) -> Response:
        if name not in found:
            raise Refused(404, "there is no such file")
        return Response(found[name], media_type=KINDS["." + name.rpartition(".")[2]])

    return routes


def _answer_errors(app: FastAPI) -> None:
    """Every error is a JSON object with a sentence."""

    def answer(status: int, message: str, headers: Any = None) -> JSONResponse:
        return JSONResponse({"error": message}, status, headers)

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> JSONResponse:
        return answer(error.status, error.message, error.headers)

    @app.exception_handler(RequestValidationError)
    async def not_understood(_: Request, error: RequestValidationError) -> JSONResponse:
        return answer(400, in_words(error.errors()))

    @app.exception_handler(HTTPException)
    async def of_starlette(_: Request, error: HTTPException) -> JSONResponse:
        allowed = (error.headers or {}).get("Allow", "another method")
        sentences = {
            404: "there is no such path; /docs lists all",
            405: f"this path is asked with {allowed}; /docs says how",
        }
        return answer(error.status_code, sentences.get(error.status_code, str(error.detail)), error.headers)

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> JSONResponse:
        return answer(500, "something went wrong here, not in your request; the server's log says what")
