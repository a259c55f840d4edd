import { takeLoggedDefects, watchLog, watchOutput } from './watch-log';

describe('watchLog', () => {
  it('keeps only defects, until they are taken', () => {
    const log = watchLog('demo');
    const defect = '{"level":"warn","err":{"code":"42501"},"msg":"a purge failed"}\n';
    log.write('{"level":"warn","msg":"the database is unreachable"}\n');
    log.write(defect);
    expect(takeLoggedDefects()).toEqual([defect.trimEnd()]);
    expect(takeLoggedDefects()).toEqual([]);
  });

  it('counts a failed job once, whatever the cause', () => {
    const log = watchLog('demo');
    const failed = '{"level":"warn","err":{"code":"42501"},"msg":"failed, and will run again"}';
    log.write(`${failed}\n`);
    expect(takeLoggedDefects()).toEqual([failed]);
  });
});

describe('watchOutput', () => {
  it('recognises lines that arrive in pieces', () => {
    const watch = watchOutput();
    watch('{"level":"info","msg":"started"}\n{"level":"err');
    expect(takeLoggedDefects()).toEqual([]);
    watch('or","msg":"broken"}\n');
    expect(takeLoggedDefects()).toEqual(['{"level":"error","msg":"broken"}']);
  });
});
