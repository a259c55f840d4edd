import { defectsInLog } from '#platform/log-errors.ts';
import { recordedLog } from './recording';

/** Where a service of a test writes its log. */
interface WatchedLog {
  write(line: string): void;
  flushSync(): void;
}

const defects: string[] = [];

/**
 * Takes the log of a service that runs in this process. A line that tells of a defect (`defectsInLog`) fails the running test, unless the
 * test calls `permitFaults`. @param program names the log where this run keeps logs
 */
export function watchLog(program: string): WatchedLog {
  const record = recordedLog(program);
  return {
    write: (line) => {
      record(line);
      defects.push(...defectsInLog(line));
    },
    flushSync: () => undefined,
  };
}

/** The defects logged since the last call. */
export function takeLoggedDefects(): string[] {
  return defects.splice(0);
}
