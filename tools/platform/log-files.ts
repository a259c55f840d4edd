import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

const TAIL_BYTES = 64 * 1024;

/** The last `count` lines of a file (of its last 64 KiB), or an empty string when it cannot be read. */
export function lastLines(file: string, count: number): string {
  let handle: number;
  try {
    handle = openSync(file, 'r');
  } catch (error) {
    return error instanceof Error ? error.message : '';
  }
  try {
    const { size } = fstatSync(handle);
    const buffer = Buffer.alloc(Math.min(size, TAIL_BYTES));
    readSync(handle, buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString('utf8').trimEnd().split('\n').slice(-count).join('\n');
  } finally {
    closeSync(handle);
  }
}
