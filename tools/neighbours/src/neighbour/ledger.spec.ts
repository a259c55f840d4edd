import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fixedClock } from '@platform/time';
import { Ledger } from './ledger';

const clock = fixedClock('2026-01-05T10:00:00Z');

describe('Ledger', () => {
  let folder: string;
  let path: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ledger-'));
    path = join(folder, 'state', 'things.jsonl');
  });

  afterEach(() => rm(folder, { recursive: true, force: true }));

  it('numbers records and lists them in order of arrival', async () => {
    const ledger = await Ledger.open<string>(path, clock);
    await Promise.all(['a', 'b', 'c'].map((id) => ledger.append(id, id.toUpperCase())));
    expect(ledger.entries().map(({ sequence, id, record }) => [sequence, id, record])).toEqual([
      [1, 'a', 'A'],
      [2, 'b', 'B'],
      [3, 'c', 'C'],
    ]);
    expect(ledger.entries({ after: 1, limit: 1 }).map(({ id }) => id)).toEqual(['b']);
    expect(ledger.entries({ matches: (record) => record === 'C' }).map(({ id }) => id)).toEqual(['c']);
    await ledger.close();
  });

  it('has a line on disk when append resolves', async () => {
    const ledger = await Ledger.open<number>(path, clock);
    await ledger.append('a', 1);
    expect(JSON.parse(await readFile(path, 'utf8'))).toEqual({
      sequence: 1,
      id: 'a',
      recordedAt: '2026-01-05T10:00:00.000Z',
      record: 1,
    });
    await ledger.close();
  });

  it('records an id once, also across a restart, and counts duplicates', async () => {
    const first = await Ledger.open<number>(path, clock);
    await Promise.all([first.append('a', 1), first.append('a', 2)]);
    expect(first.duplicates).toBe(1);
    await first.close();

    const second = await Ledger.open<number>(path, clock);
    await second.append('a', 3);
    await second.append('b', 4);
    expect(second.entries().map(({ sequence, record }) => [sequence, record])).toEqual([
      [1, 1],
      [2, 4],
    ]);
    expect(second.duplicates).toBe(1);
    await second.close();
  });

  it('drops a last line that a crash cut short and goes on after it', async () => {
    const first = await Ledger.open<number>(path, clock);
    await first.append('a', 1);
    await first.close();
    await appendFile(path, '{"sequence":2,"id":"b","rec');

    const second = await Ledger.open<number>(path, clock);
    expect(second.size).toBe(1);
    await second.append('c', 3);
    await second.close();
    const third = await Ledger.open<number>(path, clock);
    expect(third.entries().map(({ id }) => id)).toEqual(['a', 'c']);
    await third.close();
  });

  it('refuses a file with a broken line in the middle', async () => {
    const first = await Ledger.open<number>(path, clock);
    await first.append('a', 1);
    await first.close();
    await appendFile(path, 'not json\n');
    await expect(Ledger.open(path, clock)).rejects.toThrow(SyntaxError);
  });
});
