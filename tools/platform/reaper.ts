/**
 * Outlives the supervisor to clean up after it. Its standard input is a pipe whose other end only the
 * supervisor holds: however the supervisor ends, kill -9 included, the pipe closes, and the reaper stops the
 * processes that the run record still lists. After an orderly stop there is no record, and nothing to do.
 *
 * Usage: node reaper.ts <run record>
 */
import { sweepLeftovers } from './run-record.ts';

const file = process.argv[2];
if (file === undefined) throw new Error('Usage: node reaper.ts <run record>');
// Ctrl-C and a closing terminal signal every process of the session, and the reaper must outlive the
// supervisor.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.stdin.resume();
process.stdin.once('close', () => void sweepLeftovers(file));
