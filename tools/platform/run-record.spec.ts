import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProcessStart } from './processes.ts';
import { claimRunRecord, findRunRecord, isSupervised, type RunRecord, sweepLeftovers } from './run-record.ts';

describe('the run record', () => {
  let folder: string;
  let file: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'run-record-'));
    file = join(folder, 'run.json');
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  const record = (overrides: Partial<RunRecord> = {}): RunRecord => ({
    supervisor: { pid: process.pid, start: findProcessStart(process.pid) ?? '' },
    processes: [],
    removeFolder: null,
    ...overrides,
  });

  it('can be claimed once', () => {
    expect(claimRunRecord(file, record())).toBe(true);
    expect(claimRunRecord(file, record())).toBe(false);
    const found = findRunRecord(file);
    expect(found && isSupervised(found)).toBe(true);
  });

  it('is free again after the sweep of a crashed run', async () => {
    claimRunRecord(file, record({ supervisor: { pid: process.pid, start: 'another life' } }));
    expect(await sweepLeftovers(file)).toEqual([]);
    expect(claimRunRecord(file, record())).toBe(true);
  });

  it('never ends a later process with the pid of a recorded one', async () => {
    const reused = {
      name: 'x',
      pid: process.pid,
      start: 'another life',
      stage: 0,
      signal: 'SIGKILL',
      graceMs: 0,
    } as const;
    claimRunRecord(file, record({ supervisor: { pid: 0, start: '' }, processes: [reused] }));
    expect(await sweepLeftovers(file)).toEqual([]);
  });

  it('counts as left by a crash if it is incomplete', async () => {
    writeFileSync(file, '{"supervisor":');
    await sweepLeftovers(file);
    expect(findRunRecord(file)).toBeNull();
  });
});
