from __future__ import annotations

from pathlib import Path

from lbr2pgo.pgo.source_trees import Trees


def test_one_job_builds_in_the_tree_itself(tmp_path: Path) -> None:
    with Trees(tmp_path, tmp_path / "work", 1).one() as tree:
        assert tree == tmp_path
    assert not (tmp_path / "work").exists()


def test_several_jobs_have_copies_without_the_copies_and_free_them(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int a;")
    (tmp_path / "link").symlink_to("a.c")
    copies = tmp_path / "work" / "trees"
    (copies / "1").mkdir(parents=True)
    (copies / "1" / "old").touch()
    trees = Trees(tmp_path, copies, 2)
    with trees.one() as first, trees.one() as second:
        assert {first, second} == {copies / "1", copies / "2"}
        for tree in (first, second):
            names = {str(path.relative_to(tree)) for path in tree.rglob("*")}
            assert names == {"a.c", "link", "work"}
            assert (tree / "link").readlink() == Path("a.c")
    with trees.one() as again:
        assert again in (first, second)
