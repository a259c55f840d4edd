import type { Cluster } from '../cluster.ts';
import type { Journal } from '../load/journal.ts';
import { CheckBuilder, type Check } from './check.ts';

/** Every replica that validates tokens refuses each revoked one, now that all are healthy. */
export async function auditTokens(cluster: Cluster, { revokedTokens }: Journal): Promise<Check> {
  const check = new CheckBuilder('revocations: hold on every replica');
  let asked = 0;
  for (const { name, label, program } of cluster.replicas) {
    for (const { token, jti } of revokedTokens) {
      asked += 1;
      const status = await statusOf(`${program.url}${PATHS[name.service]}`, token);
      if (status !== 401) check.wrong(`${label} answered ${status} to the revoked token ${jti}`);
    }
  }
  return check.done(revokedTokens.length, asked);
}

const PATHS = {
  auth: '/auth/revocations?minDate=2100-01-01T00:00:00Z',
  settings: '/platform/v1/subsystems/chaos/settings?pageSize=1',
  task: '/Schedules?pageSize=1',
} as const;

async function statusOf(url: string, token: string): Promise<number> {
  const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  await answer.arrayBuffer();
  return answer.status;
}
