import { defectsInLog, failedJobsInLog } from './log-errors.ts';

const line = (level: string, members: object): string =>
  JSON.stringify({ level, time: '2026-01-05T10:00:00.000Z', service: 'auth-service', ...members });

describe('defectsInLog', () => {
  it.each(['error', 'fatal'])('finds a line at level %s', (level) => {
    const defect = line(level, { msg: 'broken' });
    expect(defectsInLog(`${line('info', { msg: 'started' })}\n${defect}\n`)).toEqual([defect]);
  });

  it.each([
    ['a right that the role lacks', '42501'],
    ['a missing table', '42P01'],
    ['a string that PostgreSQL cannot store', '22021'],
  ])('finds a warning about %s', (_, code) => {
    const defect = line('warn', { kind: 'sign-ins', err: { type: 'error', code }, msg: 'a purge failed' });
    expect(defectsInLog(defect)).toEqual([defect]);
  });

  it('finds the error of PostgreSQL that is the cause of another', () => {
    const err = { type: 'QueryFailedError', message: '…', cause: { type: 'error', code: '42501' } };
    expect(defectsInLog(line('warn', { err }))).toHaveLength(1);
  });

  it('finds a programming error in a warning', () => {
    const err = { type: 'TypeError', message: "Cannot read properties of undefined (reading 'id')" };
    expect(defectsInLog(line('warn', { err, msg: 'failed, and will run again' }))).toHaveLength(1);
  });

  it.each([
    ['a warning of an outage', line('warn', { err: { code: 'ECONNREFUSED' } })],
    [
      'a fetch that failed',
      line('warn', {
        err: { type: 'TokenRequestError', cause: { type: 'TypeError', message: 'fetch failed' } },
      }),
    ],
    ['a contended transaction', line('warn', { err: { code: '40001' } })],
    ['a line of another program', 'Error: at level "error"'],
    ['nothing', ''],
  ])('ignores %s', (_, log) => {
    expect(defectsInLog(log)).toEqual([]);
  });
});

describe('failedJobsInLog', () => {
  const failedOf = (err: object): string =>
    line('warn', { context: 'PurgeJob', err, msg: 'failed, and will run again' });

  it.each([
    ['a constraint', { type: 'error', code: '23505' }],
    ['a statement that took too long', { type: 'error', code: '57014' }],
    ['an error of the application', { type: 'Error', message: 'no such month' }],
  ])('finds a job that failed with %s', (_, err) => {
    const other = line('warn', { err, msg: 'refused' });
    expect(failedJobsInLog(`${other}\n${failedOf(err)}\n`)).toEqual([failedOf(err)]);
  });

  it.each([
    ['an unreachable server', { type: 'Error', code: 'ECONNREFUSED' }],
    ['a server that is shutting down', { type: 'error', code: '57P01' }],
    ['a lost connection', { type: 'DatabaseUnavailableError', message: 'the connection was lost' }],
    ['no connection in time', { type: 'Error', message: 'Connection terminated due to connection timeout' }],
  ])('ignores a job that failed with %s', (_, err) => {
    expect(failedJobsInLog(failedOf(err))).toEqual([]);
  });
});
