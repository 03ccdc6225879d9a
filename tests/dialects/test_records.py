from byok.dialects.records import ABOUT_RECORDS, call_record


def test_a_record_names_the_call_and_its_result() -> None:
    record = call_record("view", '{"path": "a"}', "1 line")
    assert record == '[earlier tool call]\nview {"path": "a"}\nresult:\n1 line'
    assert record.partition("\n")[0] in ABOUT_RECORDS
