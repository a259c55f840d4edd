/** argon2id alone, with the cost parameters and the concurrency of auth-service. */
import { hash, verify } from '@node-rs/argon2';
import { callsPerSecond, serveMeasurements } from './serve-measurements';

const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
const AT_ONCE = Number(process.env['HASHES_AT_ONCE']);
const PASSWORD = 'Demo-Passw0rd!';

async function main(): Promise<void> {
  const stored = await hash(PASSWORD, COST);
  serveMeasurements({
    'argon2id alone': async (seconds) => {
      const verifyOne = async (): Promise<void> => {
        if (!(await verify(stored, PASSWORD))) throw new Error('the correct password was refused');
      };
      const loops = Array.from({ length: AT_ONCE }, () => callsPerSecond(seconds, verifyOne, 1));
      return (await Promise.all(loops)).reduce((sum, rate) => sum + rate, 0);
    },
  });
}

void main();
