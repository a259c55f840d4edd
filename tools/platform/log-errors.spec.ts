import { defectsInLog } from './log-errors.ts';

const line = (level: string, members: object): string =>
  JSON.stringify({ level, time: '2026-01-05T10:00:00.000Z', service: 'auth-service', ...members });

describe('defectsInLog', () => {
  it.each(['error', 'fatal'])('finds a line at level %s', (level) => {
    const defect = line(level, { msg: 'broken' });
    expect(defectsInLog(`${line('info', { msg: 'started' })}\n${defect}\n`)).toEqual([defect]);
  });

  it.each([
    ['a right that the role lacks', '42501'],
    ['a table that is not there', '42P01'],
    ['a string that PostgreSQL cannot store', '22021'],
  ])('finds a warning about %s', (_, code) => {
    const defect = line('warn', { kind: 'sign-ins', err: { type: 'error', code }, msg: 'a purge failed' });
    expect(defectsInLog(defect)).toEqual([defect]);
  });

  it('finds the error of PostgreSQL beneath another', () => {
    const err = { type: 'QueryFailedError', message: '…', cause: { type: 'error', code: '42501' } };
    expect(defectsInLog(line('warn', { err }))).toHaveLength(1);
  });

  it.each([
    ['a warning of an outage', line('warn', { err: { code: 'ECONNREFUSED' } })],
    ['a contended transaction', line('warn', { err: { code: '40001' } })],
    ['a line of another program', 'Error: at level "error"'],
    ['nothing', ''],
  ])('passes %s', (_, log) => {
    expect(defectsInLog(log)).toEqual([]);
  });
});
