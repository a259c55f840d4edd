import { randomUUID } from 'node:crypto';
import { postgresOptions } from '@platform/database';
import { Metrics } from '@platform/service-defaults';
import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { DataSource } from 'typeorm';
import { AUTH_SCHEMA } from '../src/migrations/schemas';
import { RecordSnapshotsJob } from '../src/token/record-snapshots.job';
import { RefreshSessionsRepository } from '../src/token/refresh-sessions.repository';
import { migrateWithIdentities } from './auth-fixture';

/**
 * The id of the transaction that rotated the token, and snapshots in which it has not begun, is in progress,
 * and has ended.
 */
const ROTATION = 1_000;
const SNAPSHOTS = { before: '900:900:', 'under way': '1000:1010:1000', ended: '1005:1010:1007' } as const;

/** The age of a snapshot in seconds, and the state of the rotation in it. */
type Recorded = readonly [secondsAgo: number, which: keyof typeof SNAPSHOTS];

const each = (from: number, to: number, which: keyof typeof SNAPSHOTS): Recorded[] =>
  Array.from({ length: from - to + 1 }, (_, index) => [from - index, which]);

describe('recorded snapshots', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateWithIdentities });
    dataSource = new DataSource(postgresOptions({ ...AUTH_SCHEMA.settings, url: database.url, poolSize: 2 }));
    await dataSource.initialize();
  });
  beforeEach(() => database.query('DELETE FROM auth.recorded_snapshot'));
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  const record = async (recorded: readonly Recorded[]): Promise<void> => {
    for (const [secondsAgo, which] of recorded)
      await database.query(
        `INSERT INTO auth.recorded_snapshot VALUES (now() - $1 * interval '1 second', $2)`,
        [secondsAgo, SNAPSHOTS[which]],
      );
  };
  const recordedAges = async (): Promise<number[]> => {
    const rows = await database.query<{ age: number }>(
      `SELECT round(extract(epoch FROM now() - recorded_at))::int AS age FROM auth.recorded_snapshot ORDER BY 1`,
    );
    return rows.map(({ age }) => age);
  };

  /**
   * Returns how many seconds ago the rotation of a token became visible to others, as far as the snapshots
   * show.
   */
  async function seenSecondsAgo(rotatedSecondsAgo: number, rotatedIn: number | null): Promise<number | null> {
    const [family, jti] = [randomUUID(), randomUUID()];
    await database.query(
      `INSERT INTO auth.refresh_family (family_id, subject, application_key, flow, persona_limit, auth_time)
       VALUES ($1, 's', 'demo-backend', 'password', 31, now())`,
      [family],
    );
    await database.query(
      `INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at, rotated_at, rotated_in)
       VALUES ($1, $2, now(), now() + interval '1 day', now() - $3 * interval '1 second', $4)`,
      [jti, family, rotatedSecondsAgo, rotatedIn],
    );
    const repository = new RefreshSessionsRepository(dataSource, { REFRESH_TOKENS_PER_HOUR: 300 });
    const { now, rotationSeenAt } = (await repository.find({
      jti,
      sessionId: family,
      issuedAt: new Date(),
    }))!;
    return rotationSeenAt && Math.round((now.getTime() - rotationSeenAt.getTime()) / 1_000);
  }

  it.each<[string, number, readonly Recorded[], number | null]>([
    ['its date if within the window, whatever is recorded', 20, each(40, 0, 'under way'), 20],
    ['its date if it had ended before the first snapshot', 90, each(35, 0, 'ended'), 90],
    ['its date without snapshots', 90, [], 90],
    ['its date if it committed in time', 33, [...each(36, 34, 'before'), ...each(33, 0, 'ended')], 33],
    [
      'the last snapshot in which it was in progress',
      90,
      [...each(35, 12, 'under way'), ...each(11, 0, 'ended')],
      12,
    ],
    ['the newest snapshot if it was in progress in all', 90, each(35, 1, 'under way'), 1],
    ['the end of a gap', 90, [[60, 'under way'], ...each(8, 0, 'ended')], 8],
    ['the end of a gap that began before it', 35, [[60, 'before'], ...each(8, 0, 'ended')], 8],
    ['unknown, within a gap', 90, [[60, 'under way']], null],
    ['unknown, within a gap that began before it', 35, [[60, 'before']], null],
    [
      'its date if that precedes its transaction',
      90,
      [...each(35, 12, 'before'), ...each(11, 0, 'ended')],
      90,
    ],
    ['its date despite snapshots from the future', 90, [...each(35, 0, 'ended'), [-50, 'under way']], 90],
  ])('date a rotation: %s', async (_, rotatedSecondsAgo, recorded, expected) => {
    await record(recorded);
    expect(await seenSecondsAgo(rotatedSecondsAgo, ROTATION)).toBe(expected);
  });

  it('do not change the date of a rotation by release 1.0.0', async () => {
    await record(each(35, 1, 'under way'));
    expect(await seenSecondsAgo(90, null)).toBe(90);
  });

  it('are taken once a second, and kept for half a minute plus the one before', async () => {
    const job = new RecordSnapshotsJob(dataSource, new Metrics());
    await record([
      [3_600, 'before'],
      [60, 'before'],
      [32, 'before'],
      [5, 'before'],
      [-3_600, 'before'],
    ]);
    await job.run();
    expect(await recordedAges()).toEqual([0, 5, 32]);
    await Promise.all([job.run(), job.run()]);
    expect(await recordedAges()).toEqual([0, 5, 32]);
  });
});
