import { join } from 'node:path';
import { runProcess } from '@platform/testing';
import { findOnPath } from '#platform/processes.ts';

/** Some 55 s as a rule; more beside other tests. */
const DRILL_TIMEOUT_MS = 300_000;

const HAS_PSQL = findOnPath('psql') !== null;
if (!HAS_PSQL) process.stderr.write('\nSKIPPED: the drill (Debian: postgresql-client brings psql)\n\n');

describe('the documented restore to an instant', () => {
  (HAS_PSQL ? it : it.skip)(
    'brings back what was acknowledged before it, and nothing twice',
    async () => {
      const running = await runProcess({ entry: join(__dirname, '../main.ts'), args: [], env: {} });
      try {
        const exitCode = await running.exited;
        const written = running.output();
        // With everything that it wrote as the message.
        expect({ exitCode, written }).toEqual({ exitCode: 0, written });
      } finally {
        await running.stop();
      }
    },
    DRILL_TIMEOUT_MS,
  );
});
