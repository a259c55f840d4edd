import { join } from 'node:path';
import { podSecurityProblems } from './pod-security.ts';
import { EVERYTHING, renderAll } from './renderings.ts';
import { withFault } from './test/faults.ts';
import type { Fault } from './test/faults.ts';
const RENDERINGS = renderAll(join(__dirname, '../..'));
const ALL = RENDERINGS.find(({ folder }) => folder === EVERYTHING)?.objects ?? [];

const POD = 'spec.template.spec';
const CONTAINER = `${POD}.containers.0`;

type Row = [what: string, at: string, change: Fault['change'], says: string];

/** One mistake for each control of the standard, in the order of its documentation. */
const CONTROLS: readonly Row[] = [
  [
    'hostProcess',
    `${POD}.securityContext`,
    (f) => (f.windowsOptions = { hostProcess: true }),
    'hostProcess is not allowed',
  ],
  ['hostNetwork', POD, (f) => (f.hostNetwork = true), 'hostNetwork is not allowed'],
  ['hostPID', POD, (f) => (f.hostPID = true), 'hostPID is not allowed'],
  ['hostIPC', POD, (f) => (f.hostIPC = true), 'hostIPC is not allowed'],
  ['privileged', `${CONTAINER}.securityContext`, (f) => (f.privileged = true), 'privileged is not allowed'],
  [
    'added capabilities',
    `${CONTAINER}.securityContext.capabilities`,
    (f) => (f.add = ['SYS_ADMIN']),
    'only NET_BIND_SERVICE may be added',
  ],
  [
    'dropping too few',
    `${CONTAINER}.securityContext.capabilities`,
    (f) => (f.drop = ['NET_RAW']),
    'capabilities must drop ALL',
  ],
  [
    'dropping nothing',
    `${CONTAINER}.securityContext`,
    (f) => delete f.capabilities,
    'capabilities must drop ALL',
  ],
  [
    'hostPath',
    POD,
    (f) => (f.volumes = [{ name: 'v', hostPath: { path: '/' } }]),
    'volumes of type hostPath are not allowed',
  ],
  [
    'other volumes',
    POD,
    (f) => (f.volumes = [{ name: 'v', nfs: { server: 's', path: '/' } }]),
    'volumes of type nfs are not allowed',
  ],
  ['host ports', `${CONTAINER}.ports.0`, (f) => (f.hostPort = 80), 'hostPort is not allowed'],
  [
    'hosts in probes',
    `${CONTAINER}.livenessProbe.httpGet`,
    (f) => (f.host = '169.254.169.254'),
    'probes and hooks must not name a host',
  ],
  [
    'AppArmor off',
    `${POD}.securityContext`,
    (f) => (f.appArmorProfile = { type: 'Unconfined' }),
    'appArmorProfile must not be Unconfined',
  ],
  [
    'a type of SELinux',
    `${POD}.securityContext`,
    (f) => (f.seLinuxOptions = { type: 'spc_t' }),
    'seLinuxOptions.type is not allowed',
  ],
  [
    'a user of SELinux',
    `${POD}.securityContext`,
    (f) => (f.seLinuxOptions = { user: 'root' }),
    'seLinuxOptions.user and role',
  ],
  [
    'another /proc',
    `${CONTAINER}.securityContext`,
    (f) => (f.procMount = 'Unmasked'),
    'procMount must be Default',
  ],
  ['no seccomp', `${POD}.securityContext`, (f) => delete f.seccompProfile, 'seccompProfile must be'],
  [
    'seccomp off',
    `${CONTAINER}.securityContext`,
    (f) => (f.seccompProfile = { type: 'Unconfined' }),
    'seccompProfile must be',
  ],
  [
    'sysctls',
    `${POD}.securityContext`,
    (f) => (f.sysctls = [{ name: 'kernel.msgmax', value: '1' }]),
    'sysctl kernel.msgmax is not allowed',
  ],
  [
    'escalation',
    `${CONTAINER}.securityContext`,
    (f) => delete f.allowPrivilegeEscalation,
    'allowPrivilegeEscalation must be false',
  ],
  ['maybe root', `${POD}.securityContext`, (f) => delete f.runAsNonRoot, 'runAsNonRoot must be true'],
  [
    'root after all',
    `${CONTAINER}.securityContext`,
    (f) => (f.runAsNonRoot = false),
    'runAsNonRoot must not be false',
  ],
  ['user 0', `${CONTAINER}.securityContext`, (f) => (f.runAsUser = 0), 'runAsUser must not be 0'],
  [
    'a careless init container',
    POD,
    (f) => (f.initContainers = [{ name: 'init', image: 'init:1' }]),
    'init: allowPrivilegeEscalation must be false',
  ],
];

describe('the restricted Pod Security Standard', () => {
  it.each(RENDERINGS)('is kept by $folder', ({ objects }) => {
    expect(podSecurityProblems(objects)).toEqual([]);
  });

  it.each(RENDERINGS)('is enforced by the namespace, where $folder has it', ({ objects }) => {
    for (const { metadata } of objects.filter(({ kind }) => kind === 'Namespace'))
      expect(metadata.labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'restricted' });
  });

  it.each(CONTROLS)('refuses %s', (what, at, change, says) => {
    const spoilt = withFault(ALL, { what, object: 'Deployment/settings-service', at, change, says });
    const problems = podSecurityProblems(spoilt);
    expect(problems).toContainEqual(expect.stringContaining(says));
    expect(problems.every((problem) => problem.startsWith('Deployment/settings-service: '))).toBe(true);
  });

  it('looks into Jobs and CronJobs too', () => {
    const change: Fault['change'] = (f) => (f.hostNetwork = true);
    for (const [object, at] of [
      ['Job/auth-service-migrate', POD],
      ['CronJob/auth-service-administration', 'spec.jobTemplate.spec.template.spec'],
    ] as const)
      expect(podSecurityProblems(withFault(ALL, { what: '', object, at, change, says: '' }))).toEqual([
        `${object}: hostNetwork is not allowed`,
      ]);
  });
});
