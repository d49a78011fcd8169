"""Files and directories behind one interface: on disk here, in memory for crash tests."""
