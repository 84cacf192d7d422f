"""Reading everything once: pages, what may be missing, and what may not."""

from __future__ import annotations

import pytest

from rebalancer.errors import KubeError, KubeForbidden, KubeUnavailable
from rebalancer.kube.listing import list_all
from rebalancer.kube.resources import Resource
from tests.kube.scripted import Answering, a_server, reply, status

PODS = Resource("Pod", "", "v1", "pods", required=True)
JOBS = Resource("Job", "batch", "v1", "jobs")


async def test_pages_are_put_together_and_items_get_their_kind():
    """Items of a list do not say what they are."""
    first = reply({"metadata": {"continue": "t"}, "items": [{"metadata": {"name": "a"}}]})
    last = reply({"metadata": {}, "items": [{"metadata": {"name": "b"}}]})
    async with a_server(first, last, reply({"items": None})) as (server, transport):
        objects, notes = await list_all(transport, [PODS, JOBS])
    assert objects == [{"metadata": {"name": "a"}, "kind": "Pod"}, {"metadata": {"name": "b"}, "kind": "Pod"}]
    assert (notes, server.asked[1].query["continue"]) == ([], "t")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(reply(status(403, "Forbidden", "no"), 403), KubeForbidden, id="forbidden"),
        pytest.param(reply("404 page not found\n", 404), KubeError, id="not-served"),
        pytest.param(reply("<html>", 200), KubeUnavailable, id="html"),
    ],
)
async def test_a_kind_that_cannot_be_read_is_a_note_or_an_error(answer: Answering, expected: type[Exception]):
    """Without pods nothing can be decided; without Jobs one can go on, and says so."""
    async with a_server(answer) as (_, transport):
        with pytest.raises(expected):
            await list_all(transport, [PODS])
    async with a_server(answer) as (_, transport):
        objects, (note,) = await list_all(transport, [JOBS])
    assert objects == []
    assert "jobs.batch" in note


async def test_a_list_whose_version_expires_is_read_again_from_the_start():
    """Half of one version and half of another would be no picture at all."""
    first = reply({"metadata": {"continue": "t"}, "items": [{"metadata": {"name": "old"}}]})
    whole = reply({"items": [{"metadata": {"name": "new"}}]})
    async with a_server(first, reply(status(410, "Expired"), 410), whole) as (_, transport):
        objects, _ = await list_all(transport, [PODS])
    assert [each["metadata"]["name"] for each in objects] == ["new"]
