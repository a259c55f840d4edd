import { existsSync } from 'node:fs';
import { testsThatNeed } from '@platform/testing';
import { findOnPath } from '#platform/processes.ts';
import { FAKETIME } from '../engines/clocks.ts';
import { RUN_TIMEOUT_MS, expectClean } from './expect-clean';

const FAULTS = ['postmaster-kill', 'broker-node-kill', 'etcd-leader-kill', 'machine-clock-step'];

/** Needs root, and the packages of `.ci/install cluster`. */
const HAS_CLUSTER =
  process.getuid?.() === 0 &&
  findOnPath('debootstrap') !== null &&
  findOnPath('ip') !== null &&
  existsSync(FAKETIME);
const { it: itWithCluster } = testsThatNeed(
  'lost leaders of a cluster',
  HAS_CLUSTER ? null : 'no three machines (root and .ci/install cluster)',
);

describe('three machines with RabbitMQ and PostgreSQL', () => {
  itWithCluster(
    'lose no acknowledged write when each leader is killed and a clock jumps',
    () => {
      const rounds = FAULTS.length;
      const flags = ['--cluster', '--rounds', String(rounds), '--faults', FAULTS.join(',')];
      return expectClean(rounds, flags);
    },
    RUN_TIMEOUT_MS,
  );
});
