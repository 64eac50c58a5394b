"""Messages of a run, from the control machine, to the command or webhook of the settings' `notify`."""
