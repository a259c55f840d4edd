import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { WORKSPACE } from '#platform/state-folder.ts';

it.each([
  ['neighbours', 'Allowed choices are auth, settings, task.'],
  ['toString', 'Allowed choices are auth, settings, task.'],
  ['', 'Allowed choices are auth, settings, task.'],
  [undefined, "missing required argument 'service'"],
])('refuses to administer the service %p', (name, complaint) => {
  const args = name === undefined ? [] : [name];
  const program = join(WORKSPACE, 'tools/start/administer.ts');
  const { status, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([2, expect.stringContaining(complaint)]);
});
