import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { testsThatNeed } from '@platform/testing';
import { RUN_TIMEOUT_MS, expectClean } from './expect-clean';

/** The change log names the commit of the last release. */
const CHANGES = readFileSync(join(__dirname, '../../../../CHANGELOG.md'), 'utf8');
const RELEASE = /The release is commit `(\w+)`/.exec(CHANGES)?.[1] ?? '';

const HAS_RELEASE =
  spawnSync('git', ['cat-file', '-e', `${RELEASE}^{commit}`], { cwd: __dirname }).status === 0;
const { it: itWithRelease } = testsThatNeed(
  'an upgrade from the last release',
  HAS_RELEASE ? null : `no commit ${RELEASE} (a checkout with its history has it)`,
);

describe('an upgrade from the last release, and back', () => {
  itWithRelease(
    'fails no request and loses nothing',
    () => expectClean(6, ['--upgrade-from', RELEASE]),
    RUN_TIMEOUT_MS,
  );
});
