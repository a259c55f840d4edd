import { runAdmin } from './admin/administration';

// Sets the exit code instead of calling process.exit(), which would drop output still buffered for a pipe.
void runAdmin(process.argv.slice(2)).then((exitCode) => {
  process.exitCode = exitCode;
});
