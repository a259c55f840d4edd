import { runAdmin } from './admin/administration';

// The exit code, not process.exit(): what was written to a pipe must arrive.
void runAdmin(process.argv.slice(2)).then((exitCode) => {
  process.exitCode = exitCode;
});
