import { takeLoggedDefects, watchLog, watchOutput } from './watch-log';

describe('watchLog', () => {
  it('keeps defects until they are taken, and nothing else', () => {
    const log = watchLog('demo');
    const defect = '{"level":"warn","err":{"code":"42501"},"msg":"a purge failed"}\n';
    log.write('{"level":"warn","msg":"the database is unreachable"}\n');
    log.write(defect);
    expect(takeLoggedDefects()).toEqual([defect.trimEnd()]);
    expect(takeLoggedDefects()).toEqual([]);
  });

  it('counts a failed job once, whatever it failed of', () => {
    const log = watchLog('demo');
    const failed = '{"level":"warn","err":{"code":"42501"},"msg":"failed, and will run again"}';
    log.write(`${failed}\n`);
    expect(takeLoggedDefects()).toEqual([failed]);
  });
});

describe('watchOutput', () => {
  it('sees lines that come in pieces', () => {
    const watch = watchOutput();
    watch('{"level":"info","msg":"started"}\n{"level":"err');
    expect(takeLoggedDefects()).toEqual([]);
    watch('or","msg":"broken"}\n');
    expect(takeLoggedDefects()).toEqual(['{"level":"error","msg":"broken"}']);
  });
});
