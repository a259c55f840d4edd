import { randomUUID } from 'node:crypto';
import type { HotStatement } from '@platform/testing';
import type { DataSource } from 'typeorm';
import { SessionsRepository } from '../src/sessions/sessions.repository';
import { SessionBoundsRepository } from '../src/token/session-bounds.repository';
import type { SessionsOfUser } from '../src/token/session-bounds.repository';
import { RefreshSessionsRepository } from '../src/token/refresh-sessions.repository';
import { jtiOf } from './scale-rows';

const bounds = (d: DataSource): SessionBoundsRepository => new SessionBoundsRepository(d);
const sessions = (d: DataSource): RefreshSessionsRepository =>
  new RefreshSessionsRepository(d, { REFRESH_TOKENS_PER_HOUR: 300 });
const nameOf = (n: number) => ({ jti: jtiOf(n), sessionId: jtiOf(n), issuedAt: new Date() });
const userOf = (n: number): SessionsOfUser => ({
  subject: `personid:${String(n)}`,
  applicationKey: 'demo-backend',
});
const MANY: SessionsOfUser = { subject: 'many', applicationKey: 'demo-backend' };
const of = Array.from({ length: 20 }, (_, n) => 100 + n);

/** Statements that keep the sessions of one user within bounds. */
export const sessionBoundStatements = (rows: number): readonly HotStatement<DataSource>[] => [
  {
    // Finds the session that has as many used tokens as there are sessions.
    name: 'find the session that was refreshed most',
    pages: 120,
    prepared: true,
    work: async (d) => expect(await sessions(d).find(nameOf(2 * rows))).not.toBeNull(),
  },
  {
    name: 'find a pruned session',
    pages: 60,
    work: (d) => sessions(d).find({ ...nameOf(rows / 2), jti: randomUUID() }),
  },
  {
    name: 'find sessions with many refresh tokens',
    pages: 6_000,
    work: async (d) =>
      expect(await bounds(d).findOversizedSessions([...of.map(jtiOf), jtiOf(rows)])).toEqual([jtiOf(rows)]),
  },
  {
    // Prunes 10,000 tokens. Without a recorded snapshot that is old enough, each token is checked separately.
    name: 'prune a step of a session',
    pages: 100_000,
    work: async (d) =>
      expect(await bounds(d).pruneSession(jtiOf(rows), null)).toMatchObject({ count: 10_000 }),
  },
  {
    name: 'find users with many sessions',
    pages: 200,
    work: (d) => bounds(d).findUsersWithSurplus(of.map(userOf), 1_000),
  },
  {
    name: 'find users with many ended sessions',
    pages: 200,
    work: (d) => bounds(d).findUsersOfEnded(of.map(userOf), 1_000),
  },
  {
    name: 'find the user with the most sessions',
    pages: 300,
    work: async (d) => expect(await bounds(d).findUsersWithSurplus([MANY], 1_000)).toEqual([MANY]),
  },
  {
    name: 'find the user with the most ended sessions',
    pages: 300,
    work: async (d) => expect(await bounds(d).findUsersOfEnded([MANY], 1_000)).toEqual([MANY]),
  },
  {
    name: 'displace a step of very many sessions',
    pages: 6_000,
    work: async (d) =>
      expect(await bounds(d).displaceSessions(MANY, 1_000)).toEqual({ count: 100, isMore: true }),
  },
  {
    name: 'remove a step of very many ended sessions',
    pages: 6_000,
    work: async (d) =>
      expect(await bounds(d).removeEndedSessions(MANY, 1_000)).toEqual({ count: 0, isMore: true }),
  },
  {
    name: 'page through very many sessions that can no longer be refreshed',
    pages: 25_000,
    work: async (d) => {
      const owner = { subject: 'many' };
      const { sessions, scanEnd } = await new SessionsRepository(d).page(owner, 31_536_000, 100);
      expect([sessions, scanEnd]).toEqual([[], expect.anything()]);
    },
  },
  {
    name: 'displace a session',
    pages: 150,
    work: async (d) =>
      expect(await bounds(d).displaceSessions(userOf(3), 0)).toEqual({ count: 1, isMore: true }),
  },
  {
    name: 'find no ended session that is old enough to remove',
    pages: 60,
    work: async (d) =>
      expect(await bounds(d).removeEndedSessions(userOf(3), 0)).toEqual({ count: 0, isMore: false }),
  },
];
