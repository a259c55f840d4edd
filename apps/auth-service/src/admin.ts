import { textWriter } from '@platform/service-defaults';
import { administer } from './admin/administration';

const [out, err] = [textWriter(process.stdout), textWriter(process.stderr)];

// Sets the exit code instead of calling process.exit(), so that output to a pipe is flushed first.
void administer(process.argv.slice(2), {
  out: (text) => out(`${text}\n`),
  // A failed write to stderr is ignored: there is no other place to report it.
  err: (text) => void err(`${text}\n`).catch(() => undefined),
}).then((exitCode) => {
  process.exitCode = exitCode;
});
