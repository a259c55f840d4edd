import { makeAccessToken } from '#platform/access-token.ts';
import type { Benchmark } from '../benchmark.ts';
import { HttpLoad } from '../http-load.ts';
import { SqlLoad, type SqlWork } from '../sql-load.ts';

const CONNECTIONS = 32;
const KEYS_PER_CONNECTION = 50;
const VALUE = { code: 'EUR', digits: 2, note: 'x'.repeat(200) };
const VALUE_TEXT = JSON.stringify(VALUE);
const BODY = JSON.stringify({ settingValue: VALUE });

const OURS = {
  name: 'settings-service',
  does: 'verifies the HS256 token, checks revocation and persona, scans the JSON text, writes setting and history in a REPEATABLE READ transaction, answers with the setting and its ETag',
};
const BARE = {
  name: 'bare pg',
  does: 'BEGIN REPEATABLE READ; the same upsert with its history row; COMMIT; without HTTP and without any check',
};

const SHORTEST = {
  name: 'bare pg, shortest',
  does: 'the same upsert with its history row as a transaction by itself, one round trip: the bare limit for writes that come one by one',
};

const WRITE = `
  WITH written AS (
    INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (subsystem_key, setting_key)
      DO UPDATE SET value_text = excluded.value_text, revision = excluded.revision
    RETURNING subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision
  )
  INSERT INTO settings.setting_history
    (subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, operation, user_id, person_name, persona, request_id)
  SELECT written.*, 'write', 9001, 'Ivy Internal', 1, 'bench' FROM written
  RETURNING *`;

const shortestWrite: SqlWork = (client, worker, count) => {
  const name = `Key-${worker}-${count % KEYS_PER_CONNECTION}`;
  const values = ['bare', name.toLowerCase(), 'Bare', name, VALUE_TEXT];
  return client.query({ name: 'write', text: WRITE, values });
};

const bareWrite: SqlWork = async (client, worker, count) => {
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await shortestWrite(client, worker, count);
  await client.query('COMMIT');
};

/** Settings written over and over, no two writers at one key. */
export const settingsWrite: Benchmark = {
  id: 'settings-write',
  title: 'PUT of distinct settings, with history',
  async prepare(laboratory) {
    const services = await laboratory.startServices(['auth', 'settings']);
    const ours = new HttpLoad(services.programs.settings!.url, CONNECTIONS);
    const bare = new SqlLoad(services.settings.databases.settings.app, CONNECTIONS);
    const headers = {
      authorization: `Bearer ${makeAccessToken(services.settings)}`,
      'content-type': 'application/json',
    };
    const put = (connection: number, count: number) => {
      const name = `Key-${connection}-${count % KEYS_PER_CONNECTION}`;
      const path = `/platform/v1/subsystems/Ours/settings/${name}`;
      return { method: 'PUT', path, headers, body: BODY, expect: 200 } as const;
    };
    return {
      unit: 'writes/s',
      contestants: [
        { ...OURS, measure: async (seconds) => (await ours.run(seconds, put)).requestsPerSecond },
        { ...BARE, measure: (seconds) => bare.run(seconds, bareWrite) },
        { ...SHORTEST, measure: (seconds) => bare.run(seconds, shortestWrite) },
      ],
      comparisons: [{ title: 'bare statements', of: OURS.name, against: BARE.name, goal: { atLeast: 0.8 } }],
      conditions: [
        `${CONNECTIONS} writers, 20 database connections, ${CONNECTIONS * KEYS_PER_CONNECTION} keys, values of ${VALUE_TEXT.length} bytes`,
        'The service writes what arrives together in one statement and one commit, which neither bare side does',
      ],
      close: async () => {
        await Promise.all([ours.close(), bare.close()]);
        await services.stop();
      },
    };
  },
};
