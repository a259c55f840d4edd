/** argon2id by itself, with the cost and the number of hashes at once of auth-service. */
import { hash, verify } from '@node-rs/argon2';
import { serveMeasurements } from './serve-measurements';

const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
const AT_ONCE = Number(process.env['HASHES_AT_ONCE']);
const PASSWORD = 'Demo-Passw0rd!';

async function main(): Promise<void> {
  const stored = await hash(PASSWORD, COST);
  serveMeasurements({
    'argon2id alone': async (seconds) => {
      const startedAtMs = performance.now();
      const endsAtMs = startedAtMs + seconds * 1_000;
      let done = 0;
      const loop = async (): Promise<void> => {
        while (performance.now() < endsAtMs) {
          if (!(await verify(stored, PASSWORD))) throw new Error('the password is right');
          done += 1;
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, loop));
      return done / ((performance.now() - startedAtMs) / 1_000);
    },
  });
}

void main();
