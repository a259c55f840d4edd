import { takeLoggedDefects, watchLog } from './watch-log';

describe('watchLog', () => {
  it('keeps defects until they are taken, and nothing else', () => {
    const log = watchLog('demo');
    const defect = '{"level":"warn","err":{"code":"42501"},"msg":"a purge failed"}\n';
    log.write('{"level":"warn","msg":"the database is unreachable"}\n');
    log.write(defect);
    expect(takeLoggedDefects()).toEqual([defect.trimEnd()]);
    expect(takeLoggedDefects()).toEqual([]);
  });
});
