import { textWriter } from '@platform/service-defaults';
import { administer } from './admin/administration';

const [out, err] = [textWriter(process.stdout), textWriter(process.stderr)];

// The exit code, not process.exit(): what was written to a pipe must arrive.
void administer(process.argv.slice(2), {
  out: (text) => out(`${text}\n`),
  // There is nowhere else to complain.
  err: (text) => void err(`${text}\n`).catch(() => undefined),
}).then((exitCode) => {
  process.exitCode = exitCode;
});
