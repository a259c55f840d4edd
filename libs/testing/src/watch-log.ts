import { defectsInLog, failedJobsInLog } from '#platform/log-errors.ts';
import { recordedLog } from './recording';

/** A log destination for a service under test. */
interface WatchedLog {
  write(line: string): void;
  flushSync(): void;
}

const defects: string[] = [];

/**
 * Returns a log destination for a service in this process. A line that reports a defect, or a job that failed
 * for another reason than an outage, fails the running test unless it calls `permitFaults`.
 * @param program name of the recorded log
 */
export function watchLog(program: string): WatchedLog {
  const record = recordedLog(program);
  return {
    write: (line) => {
      record(line);
      recordDefects(line);
    },
    flushSync: () => undefined,
  };
}

/**
 * Watches the output of a service in a separate process.
 * @returns a function that takes the output in pieces
 */
export function watchOutput(): (text: string) => void {
  let unfinished = '';
  return (text) => {
    const end = (unfinished + text).lastIndexOf('\n') + 1;
    recordDefects((unfinished + text).slice(0, end));
    unfinished = (unfinished + text).slice(end);
  };
}

function recordDefects(lines: string): void {
  defects.push(...new Set([...defectsInLog(lines), ...failedJobsInLog(lines)]));
}

/** Returns and clears the logged defects. */
export function takeLoggedDefects(): string[] {
  return defects.splice(0);
}
