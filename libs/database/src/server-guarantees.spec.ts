import { weaknessesOf } from './server-guarantees';
import type { ServerGuarantees } from './server-guarantees';

const ALONE: ServerGuarantees = {
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  synchronous_standby_names: '',
  wal_level: 'replica',
  receivers: 0,
};

describe('weaknessesOf', () => {
  it.each<[string, Partial<ServerGuarantees>, RegExp[]]>([
    ['a server without standbys', {}, []],
    ['synchronous standbys', { receivers: 2, synchronous_standby_names: '"m2"' }, []],
    ['synchronous standbys that are disconnected', { synchronous_standby_names: '*' }, []],
    ['asynchronous standbys', { receivers: 1 }, [/synchronous_standby_names is empty/]],
    ['no flush', { fsync: 'off', full_page_writes: 'off' }, [/^fsync is off/, /^full_page_writes is off/]],
    ['no wait for the flush', { synchronous_commit: 'off' }, [/synchronous_commit is off/]],
    [
      'no wait for standbys',
      { receivers: 1, synchronous_standby_names: '*', synchronous_commit: 'local' },
      [/synchronous_commit is local/],
    ],
    ['local flush alone', { synchronous_commit: 'local' }, []],
    ['a minimal WAL', { wal_level: 'minimal' }, [/wal_level is minimal/]],
  ])('%s', (_case, change, expected) => {
    const weaknesses = weaknessesOf({ ...ALONE, ...change });
    expect(weaknesses).toEqual(expected.map((pattern) => expect.stringMatching(pattern) as string));
  });
});
