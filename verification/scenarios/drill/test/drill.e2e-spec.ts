import { join } from 'node:path';
import { runTool, testsThatNeed } from '@platform/testing';
import { findPsql } from '#platform/postgresql-client.ts';
import { cacheFolder } from '#platform/state-folder.ts';

/** A drill usually takes about 55 s, and more if other tests run at the same time. */
const DRILL_TIMEOUT_MS = 300_000;

const { it: itWithPsql } = testsThatNeed(
  'the drill',
  findPsql(cacheFolder()) === null ? 'no psql (.ci/install postgresql-client installs it)' : null,
);

describe('the documented restore to an instant', () => {
  itWithPsql(
    'restores everything acknowledged before it, and nothing twice',
    async () => {
      const entry = join(__dirname, '../main.ts');
      const written = await runTool({ entry, env: {}, timeoutMs: DRILL_TIMEOUT_MS - 10_000 });
      expect(written).toContain('nothing lost, nothing twice');
    },
    DRILL_TIMEOUT_MS,
  );
});
