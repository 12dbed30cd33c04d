"""Documents of typed channels under the tools of pages and others: tsc, AsyncAPI's parser."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from realtime.config.reader import load
from realtime.tools.typed.asyncapi import document
from realtime.tools.typed.typescript import declarations_of
from realtime.typed.adapters import adapter_of
from realtime.typed.declarations import Declaration
from tests.js_builds import DIRECTORY, require_packages
from tests.js_node import find_node
from tests.server import ROOT
from tests.unit.typed.schemas import TYPES
from tests.unit.typed.shop import Changed, Comment, Payment, Shipped

CLIENT = ROOT / "realtime/static/realtime/client.js"

OF_TYPES = [Declaration(f"t{n}:{{pk}}", each, None) for n, (each, _, _) in enumerate(TYPES)]

PAGE = """
import { Client } from "realtime";
import type { Received } from "./channels";

declare const client: Client;

const order = client.subscribe<"orders:{pk}">("orders:42", { since: { offset: 1, epoch: "" } });
order.on("publication", ({ data, offset }) => {
  if (!("type" in data)) return console.log(data.text.length, offset?.toFixed());
  if (data.type === "Shipped") console.log(data.at.length, data.by?.length);
  else data.lines.toFixed();
});
order.once("subscribed", ({ publications }) => console.log(publications[0]?.data));
order.on("join", ({ info }) => info.user.length);
await order.ready();
await order.publish({ text: "nice" });
const [kept] = await order.history({ limit: 1 });
const data: Received<"orders:{pk}"> | undefined = kept?.data;
for await (const { data, recovered } of order) console.log("text" in data, recovered);
for await (const { data } of order.publications({ limit: 5 })) console.log("text" in data);
console.log(data, order.state, order.position?.offset);

const shared = client.channel<"orders:{pk}">("orders:42");
shared.on("publication", ({ data }) => "type" in data && data.type.length);
await shared.publish({ text: "nice", stars: 5 });
shared.release();
await client.publish<"orders:{pk}">("orders:1", { text: "nice" });
const [first] = await client.history<"orders:{pk}">("orders:1");
console.log(first?.data);

client.subscribe("other:1").on("publication", ({ data }) => data.anything);

// @ts-expect-error no such pattern
client.subscribe<"order:{pk}">("orders:42");
// @ts-expect-error the pattern does not match the name
client.subscribe<"orders:{pk}">("order:42");
// @ts-expect-error clients may not publish this
await order.publish({ type: "Changed", lines: 1 });
// @ts-expect-error text is a string
await client.publish<"orders:{pk}">("orders:1", { text: 5 });
// @ts-expect-error no publication has this
order.on("publication", ({ data }) => data.nothing);
// @ts-expect-error the handle knows the types, too
shared.on("publication", ({ data }) => data.nothing);
// @ts-expect-error nothing may be published here
await client.publish<"news">("news", {});
"""


def compile_strictly(directory: Path) -> str:
    """Compile the modules as strictly as TypeScript can; returns what it says."""
    [block] = re.findall(r"```json\n(.*?)```", (ROOT / "docs/javascript.md").read_text(), re.S)
    options: dict[str, Any] = json.loads(block)["compilerOptions"] | {
        "allowJs": True,
        "exactOptionalPropertyTypes": True,
        "outDir": str(directory / "out"),
        "noPropertyAccessFromIndexSignature": True,
        "noUncheckedIndexedAccess": True,
        "paths": {"realtime": [str(CLIENT)]},
        "skipDefaultLibCheck": True,  # TypeScript's own declarations
        "strict": True,
        "types": [],
    }
    files = ["channels.d.ts", "page.ts", "values.ts", "documented.ts"]
    (directory / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": options, "files": files})
    )
    compiler = str(DIRECTORY / "node_modules/typescript/bin/tsc")
    command = [find_node(), compiler, "-p", str(directory / "tsconfig.json")]
    return subprocess.run(command, capture_output=True, text=True).stdout


def values() -> str:
    """A module with the values of all types as they come in JSON, and what is none of them."""
    lines = ['import type { Received } from "./channels";']
    for number, (declared, good, wrong) in enumerate(TYPES):
        adapter, pattern = adapter_of(declared), json.dumps(f"t{number}:{{pk}}")
        for index, value in enumerate(good):
            text = adapter.encode(value).json.decode()
            lines.append(f"export const v{number}_{index}: Received<{pattern}> = {text};")
        lines.append("// @ts-expect-error it has another type")
        lines.append(f"export const w{number}: Received<{pattern}> = {json.dumps(wrong)};")
    return "\n".join(lines)


def test_declarations_compile_with_values_of_forty_types_and_a_page(tmp_path: Path) -> None:
    require_packages("typescript")
    declarations = [
        Declaration("orders:{pk}", Changed | Shipped, Comment),
        Declaration("news", str, None),
        *OF_TYPES,
    ]
    (tmp_path / "channels.d.ts").write_text(declarations_of(declarations, "realtime"))
    (tmp_path / "page.ts").write_text(PAGE)
    (tmp_path / "values.ts").write_text(values())
    documented = (ROOT / "docs/typed-channels.md").read_text()
    [example] = re.findall(r"```ts\n(.*?)```", documented, re.S)
    (tmp_path / "documented.ts").write_text(example)

    assert len(TYPES) >= 40
    assert compile_strictly(tmp_path) == ""
    [script] = (tmp_path / "out").rglob("documented.js")  # a browser finds no ./channels
    assert re.findall(r'^import .*"(.*)"', script.read_text(), re.M) == ["realtime"]


def parsed(directory: Path, *documents: dict[str, Any]) -> list[dict[str, Any]]:
    """What the parser reads in documents, and what it finds wrong."""
    require_packages("@asyncapi/parser")
    paths = [directory / f"asyncapi-{number}.json" for number in range(len(documents))]
    for path, content in zip(paths, documents, strict=True):
        path.write_text(json.dumps(content))
    output = subprocess.check_output([find_node(), DIRECTORY / "asyncapi.mjs", *paths], text=True)
    return [json.loads(line) for line in output.splitlines()]


def test_asyncapi_document_is_valid_and_has_channels_and_operations(tmp_path: Path) -> None:
    shop = [
        Declaration("orders:{pk}", Changed | Shipped, Comment),
        Declaration("$stock:*:{part}", Payment, None),
        Declaration("news", list[str], None),
        Declaration("notes", None, str),
    ]
    content = document(
        [*shop, *OF_TYPES],
        load({"session_authentication": True}),
        url="wss://example.com",
        title="Shop",
        version="2",
        session_cookie="sid",
    )
    broken = json.loads(json.dumps(content))
    broken["channels"]["orders_pk"]["messages"]["Comment"] = {"$ref": "#/components/messages/No"}

    read, refused = parsed(tmp_path, content, broken)

    assert read["found"] == []
    assert refused["found"] != []
    assert len(read["operations"]) == 6 + len(TYPES)
    assert {each: read["operations"][each] for each in list(read["operations"])[:6]} == {
        "send orders:{pk}": ["Changed", "Shipped", "Comment"],
        "receive orders:{pk}": ["Comment"],
        "send $stock:{rest}:{part}": ["Payment"],
        "send news": ["list"],
        "send notes": ["str"],
        "receive notes": ["str"],
    }
