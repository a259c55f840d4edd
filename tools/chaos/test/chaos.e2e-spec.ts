import { join } from 'node:path';
import { runProcess } from '@platform/testing';

/** Some 45 s as a rule. */
const RUN_TIMEOUT_MS = 240_000;
const FAULTS = ['kill-replica', 'database-kill', 'broker-kill'];

describe('a short chaos run', () => {
  it(
    'loses nothing and does nothing twice when a replica, the database and the broker are killed',
    async () => {
      const running = await runProcess({
        entry: join(__dirname, '../main.ts'),
        args: ['--seed', '1', '--rounds', String(FAULTS.length), '--faults', FAULTS.join(',')],
        env: {},
      });
      try {
        const exitCode = await running.exited;
        const written = running.output();
        // With everything that it wrote as the message.
        expect({ exitCode, written }).toEqual({ exitCode: 0, written });
        expect(written.match(/^ *[\d.]+ s {2}✔ +\d\/3 /gm)).toHaveLength(FAULTS.length);
        expect(written).toContain('nothing lost, nothing twice');
      } finally {
        await running.stop();
      }
    },
    RUN_TIMEOUT_MS,
  );
});
