import type { Benchmark } from '../benchmark.ts';
import { makeAccessToken } from '#platform/access-token.ts';
import { HttpLoad, type LoadRequest } from '../http-load.ts';

const CONNECTIONS = 32;
const PATH = '/platform/v1/subsystems/Billing/settings/Currency';
const VALUE = { code: 'EUR', digits: 2, note: 'x'.repeat(200) };

const WRITE = {
  method: 'PUT',
  path: PATH,
  body: JSON.stringify({ settingValue: VALUE }),
  expect: 200,
} as const;

const OURS = {
  name: 'settings-service',
  does: 'routes, verifies the HS256 token, checks revocation and persona, reads the row from PostgreSQL, answers',
};
const BARE = {
  name: 'bare server',
  does: '`node:http`; reads the same row with a named query of `pg`; verifies nothing',
};

/** A setting's value, read over and over. */
export const settingsRead: Benchmark = {
  id: 'settings-read',
  title: 'GET …/value of one setting',
  async prepare(laboratory) {
    const services = await laboratory.startServices(['auth', 'settings']);
    const peer = await laboratory.startPeer('tools/bench/peers/bare-settings-read.ts', {
      DATABASE_URL: services.settings.databases.settings.app,
    });
    const ours = new HttpLoad(services.programs.settings!.url, CONNECTIONS);
    const bare = new HttpLoad(peer.url, CONNECTIONS);
    const authorization = `Bearer ${makeAccessToken(services.settings)}`;
    await ours.send({ ...WRITE, headers: { authorization, 'content-type': 'application/json' } });
    return {
      unit: 'requests/s',
      contestants: [
        { ...OURS, measure: reading(ours, authorization) },
        { ...BARE, measure: reading(bare, authorization) },
      ],
      comparisons: [{ title: 'bare server', of: OURS.name, against: BARE.name, goal: { atLeast: 0.85 } }],
      conditions: [
        `one process each, ${CONNECTIONS} connections, a pool of 20 database connections each, a value of 240 bytes`,
      ],
      close: async () => {
        await Promise.all([ours.close(), bare.close()]);
        await Promise.all([services.stop(), peer.stop()]);
      },
    };
  },
};

function reading(load: HttpLoad, authorization: string): (seconds: number) => Promise<number> {
  const read: LoadRequest = { method: 'GET', path: `${PATH}/value`, headers: { authorization }, expect: 200 };
  return async (seconds) => (await load.run(seconds, () => read)).requestsPerSecond;
}
