import { runAdmin } from './admin/administration';

// Sets the exit code instead of calling process.exit(), which would drop output that a pipe has not read yet.
void runAdmin(process.argv.slice(2)).then((exitCode) => {
  process.exitCode = exitCode;
});
