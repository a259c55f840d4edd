import { findProcessStart, isRunning, parseProcStat } from './processes.ts';

const STAT_TAIL = '1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 2 3';

describe('process identity', () => {
  it('reads the start time after a command name with spaces and parentheses', () => {
    expect(parseProcStat(`42 (tmux: (server) x) S ${STAT_TAIL}`)).toBe('4711');
  });

  it('takes a zombie for gone', () => {
    expect(parseProcStat(`42 (node) Z ${STAT_TAIL}`)).toBeNull();
  });

  it('knows this process, and not another one with its number', () => {
    const start = findProcessStart(process.pid) ?? '';
    expect(isRunning({ pid: process.pid, start })).toBe(true);
    expect(isRunning({ pid: process.pid, start: `${start}0` })).toBe(false);
  });
});
