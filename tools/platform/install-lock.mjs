// Plain JavaScript on purpose: this runs with any Node from 20 on, before anything is installed.
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

const POLL_MS = 100;

/**
 * Waits until no other process holds the lock `file`, and holds it until the function that it returns is
 * called or this process ends. A holder that was killed holds nothing: it is known by its number and when it
 * began. `onWait` is called when there is something to wait for.
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

/** A hard link fails when the name exists: claiming is one atomic step. */
function claim(mine, file) {
  try {
    linkSync(mine, file);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

/** Takes a dead holder's lock away; whoever was faster may hold it by now, and gets it back. */
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
 * A process's number and, where the system tells it, when it began; just a number that is no process's when
 * there is none.
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
