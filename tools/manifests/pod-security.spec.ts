import { join } from 'node:path';
import type { Value } from './kubernetes-object.ts';
import { podSecurityProblems } from './pod-security.ts';
import { EVERYTHING, renderAll } from './renderings.ts';
import { CONTAINER, POD, withFault } from './test/faults.ts';
const RENDERINGS = renderAll(join(__dirname, '../..'));
const ALL = RENDERINGS.find(({ folder }) => folder === EVERYTHING)?.objects ?? [];

/** One fault for each control of the standard, in the order of its documentation. */
const CONTROLS: readonly (readonly [what: string, at: string, value: Value | undefined, message: string])[] =
  [
    [
      'hostProcess',
      `${POD}.securityContext.windowsOptions`,
      { hostProcess: true },
      'hostProcess is not allowed',
    ],
    ['hostNetwork', `${POD}.hostNetwork`, true, 'hostNetwork is not allowed'],
    ['hostPID', `${POD}.hostPID`, true, 'hostPID is not allowed'],
    ['hostIPC', `${POD}.hostIPC`, true, 'hostIPC is not allowed'],
    ['privileged', `${CONTAINER}.securityContext.privileged`, true, 'privileged is not allowed'],
    [
      'added capabilities',
      `${CONTAINER}.securityContext.capabilities.add`,
      ['SYS_ADMIN'],
      'only NET_BIND_SERVICE may be added',
    ],
    [
      'too few dropped capabilities',
      `${CONTAINER}.securityContext.capabilities.drop`,
      ['NET_RAW'],
      'capabilities must drop ALL',
    ],
    [
      'no dropped capabilities',
      `${CONTAINER}.securityContext.capabilities`,
      undefined,
      'capabilities must drop ALL',
    ],
    [
      'hostPath',
      `${POD}.volumes`,
      [{ name: 'v', hostPath: { path: '/' } }],
      'volumes of type hostPath are not allowed',
    ],
    [
      'other volumes',
      `${POD}.volumes`,
      [{ name: 'v', nfs: { server: 's', path: '/' } }],
      'volumes of type nfs are not allowed',
    ],
    ['host ports', `${CONTAINER}.ports.0.hostPort`, 80, 'hostPort is not allowed'],
    [
      'hosts in probes',
      `${CONTAINER}.livenessProbe.httpGet.host`,
      '169.254.169.254',
      'probes and hooks must not name a host',
    ],
    [
      'AppArmor off',
      `${POD}.securityContext.appArmorProfile`,
      { type: 'Unconfined' },
      'appArmorProfile must not be Unconfined',
    ],
    [
      'an SELinux type',
      `${POD}.securityContext.seLinuxOptions`,
      { type: 'spc_t' },
      'seLinuxOptions.type is not allowed',
    ],
    [
      'an SELinux user',
      `${POD}.securityContext.seLinuxOptions`,
      { user: 'root' },
      'seLinuxOptions.user and role',
    ],
    ['an unmasked /proc', `${CONTAINER}.securityContext.procMount`, 'Unmasked', 'procMount must be Default'],
    ['no seccomp', `${POD}.securityContext.seccompProfile`, undefined, 'seccompProfile must be'],
    [
      'seccomp off',
      `${CONTAINER}.securityContext.seccompProfile`,
      { type: 'Unconfined' },
      'seccompProfile must be',
    ],
    [
      'sysctls',
      `${POD}.securityContext.sysctls`,
      [{ name: 'kernel.msgmax', value: '1' }],
      'sysctl kernel.msgmax is not allowed',
    ],
    [
      'escalation',
      `${CONTAINER}.securityContext.allowPrivilegeEscalation`,
      undefined,
      'allowPrivilegeEscalation must be false',
    ],
    ['root not excluded', `${POD}.securityContext.runAsNonRoot`, undefined, 'runAsNonRoot must be true'],
    [
      'root allowed in a container',
      `${CONTAINER}.securityContext.runAsNonRoot`,
      false,
      'runAsNonRoot must not be false',
    ],
    ['user 0', `${CONTAINER}.securityContext.runAsUser`, 0, 'runAsUser must not be 0'],
    [
      'an unrestricted init container',
      `${POD}.initContainers`,
      [{ name: 'init', image: 'init:1' }],
      'init: allowPrivilegeEscalation must be false',
    ],
  ];

describe('the restricted Pod Security Standard', () => {
  it.each(RENDERINGS)('is met by $folder', ({ objects }) => {
    expect(podSecurityProblems(objects)).toEqual([]);
  });

  it.each(RENDERINGS)('is enforced by the namespace in $folder, if it has one', ({ objects }) => {
    for (const { metadata } of objects.filter(({ kind }) => kind === 'Namespace'))
      expect(metadata.labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'restricted' });
  });

  it.each(CONTROLS)('refuses %s', (_what, at, value, message) => {
    const problems = podSecurityProblems(withFault(ALL, 'Deployment/settings-service', at, value));
    expect(problems).toContainEqual(expect.stringContaining(message));
    expect(problems.every((problem) => problem.startsWith('Deployment/settings-service: '))).toBe(true);
  });

  it.each([
    ['Job/auth-service-migrate', POD],
    ['CronJob/auth-service-administration', 'spec.jobTemplate.spec.template.spec'],
  ])('checks %s too', (object, at) => {
    const problems = podSecurityProblems(withFault(ALL, object, `${at}.hostNetwork`, true));
    expect(problems).toEqual([`${object}: hostNetwork is not allowed`]);
  });
});
