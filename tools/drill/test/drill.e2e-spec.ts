import { join } from 'node:path';
import { runTool } from '@platform/testing';
import { findOnPath } from '#platform/processes.ts';

/** Some 55 s as a rule; more beside other tests. */
const DRILL_TIMEOUT_MS = 300_000;

const HAS_PSQL = findOnPath('psql') !== null;
if (!HAS_PSQL) process.stderr.write('\nSKIPPED: the drill (Debian: postgresql-client brings psql)\n\n');

describe('the documented restore to an instant', () => {
  (HAS_PSQL ? it : it.skip)(
    'brings back what was acknowledged before it, and nothing twice',
    async () => {
      const entry = join(__dirname, '../main.ts');
      const written = await runTool({ entry, env: {}, timeoutMs: DRILL_TIMEOUT_MS - 10_000 });
      expect(written).toContain('nothing lost, nothing twice');
    },
    DRILL_TIMEOUT_MS,
  );
});
