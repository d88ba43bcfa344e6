def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.getreports("passed"):
        for name, value in getattr(report, "user_properties", []):
            terminalreporter.write_line(f"{report.nodeid}: {name} {value}")
