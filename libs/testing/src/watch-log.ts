import { defectsInLog, failedJobsInLog } from '#platform/log-errors.ts';
import { recordedLog } from './recording';

/** Where a service of a test writes its log. */
interface WatchedLog {
  write(line: string): void;
  flushSync(): void;
}

const defects: string[] = [];

/**
 * Takes the log of a service that runs in this process. A line that tells of a defect, or of a job that
 * failed of something else than an outage, fails the running test, unless it calls `permitFaults`.
 * @param program names the log where this run keeps logs
 */
export function watchLog(program: string): WatchedLog {
  const record = recordedLog(program);
  return {
    write: (line) => {
      record(line);
      noteDefects(line);
    },
    flushSync: () => undefined,
  };
}

/** Watches the output of a service that runs in a process of its own. @returns takes it, piece by piece */
export function watchOutput(): (text: string) => void {
  let unfinished = '';
  return (text) => {
    const end = (unfinished + text).lastIndexOf('\n') + 1;
    noteDefects((unfinished + text).slice(0, end));
    unfinished = (unfinished + text).slice(end);
  };
}

function noteDefects(lines: string): void {
  defects.push(...new Set([...defectsInLog(lines), ...failedJobsInLog(lines)]));
}

/** The defects logged since the last call. */
export function takeLoggedDefects(): string[] {
  return defects.splice(0);
}
