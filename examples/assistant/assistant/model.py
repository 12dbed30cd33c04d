"""The language model: a script, so that the example needs no network and no key."""

import time

PACE = 0.06  # seconds for each word

STORY = (
    "A stream of words leaves the worker piece by piece.",
    "You may reload this page, open it in a second tab, or close all of them.",
    "The worker goes on, because a reader who leaves stops nothing.",
    "When the text has come to its end, one hook saves it, in the transaction that ends the row.",
)


def tokens(text):
    for word in text.split():
        time.sleep(PACE)
        yield f"{word} "


def think(prompt, a):
    """Write an answer to a prompt, and take notice of what is said meanwhile."""
    if "weather" in prompt.lower():
        call = {"toolCallId": "1", "toolName": "weather", "input": {"city": "Oslo"}}
        a.send({"type": "tool-input-available", **call})
        time.sleep(10 * PACE)
        a.send({"type": "tool-output-available", "toolCallId": "1", "output": "-3 °C, snow"})
        for token in tokens("It snows in Oslo, and has minus three degrees."):
            a.write(token)
        return
    for sentence in STORY:
        for said in a.inputs():
            for token in tokens(f"(You say: {said['text']}. I hear it.)"):
                a.write(token)
        for token in tokens(sentence):
            a.write(token)
