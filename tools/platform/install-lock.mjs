// Plain JavaScript on purpose: this runs with any Node from 20 on, before anything is installed.
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

const POLL_MS = 100;

/**
 * Acquires the lock `file`, waiting while another process holds it. It is held until the returned function is
 * called or this process exits. The lock of a killed process is recognised as stale by the holder's pid and
 * start time. Calls `onWait` once if it has to wait.
 */
export function lock(file, onWait) {
  const mine = `${file}.${process.pid}`;
  writeFileSync(mine, identityOf(process.pid));
  for (let waits = 0; !claim(mine, file); waits += 1) {
    const holder = read(file);
    if (holder !== null && identityOf(Number(holder.split(' ')[0])) !== holder)
      removeStale(file, holder, `${mine}.stale`);
    else if (waits === 0) onWait();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_MS);
  }
  rmSync(mine);
  const release = () => rmSync(file, { force: true });
  process.once('exit', release);
  return () => {
    process.off('exit', release);
    release();
  };
}

/** Creating a hard link fails if the name exists, so claiming is one atomic step. */
function claim(mine, file) {
  try {
    linkSync(mine, file);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Removes the lock of a dead holder. If another process has claimed the lock in between, puts its lock back.
 */
function removeStale(file, holder, aside) {
  try {
    renameSync(file, aside);
    if (read(aside) !== holder) claim(aside, file);
    rmSync(aside);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
}

/**
 * Returns a process's pid and, if the system reports it, its start time; an empty text if there is no such
 * process.
 */
function identityOf(pid) {
  const stat = read(`/proc/${pid}/stat`);
  if (stat !== null)
    return `${pid} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]} ${read('/proc/sys/kernel/random/boot_id')}`;
  try {
    return process.kill(pid, 0) ? `${pid}` : '';
  } catch (error) {
    return error.code === 'EPERM' ? `${pid}` : '';
  }
}

function read(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES'].includes(error.code)) return null;
    throw error;
  }
}
