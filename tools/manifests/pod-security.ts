import { containers, title, workloads } from './kubernetes-object.ts';
import type { Container, KubernetesObject, PodSpec } from './kubernetes-object.ts';

/** Fields that the security contexts of pods and of containers share. */
type Context = Pick<
  NonNullable<PodSpec['securityContext']>,
  'appArmorProfile' | 'runAsNonRoot' | 'runAsUser' | 'seLinuxOptions' | 'seccompProfile' | 'windowsOptions'
>;

const VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
];
/** Allowed profiles of seccomp and AppArmor. */
const PROFILES: readonly string[] = ['RuntimeDefault', 'Localhost'];
const SYSCTLS = [
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.ip_unprivileged_port_start',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range',
  'net.ipv4.ip_local_reserved_ports',
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
];
const SELINUX_TYPES = ['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t'];

/**
 * Returns the violations of the restricted Pod Security Standard in all pod templates, control by control.
 * Source: Kubernetes documentation, Pod Security Standards, restricted (which includes baseline).
 */
export function podSecurityProblems(objects: readonly KubernetesObject[]): string[] {
  return workloads(objects).flatMap(({ object, pod }) => [
    ...podProblems(pod).map((problem) => `${title(object)}: ${problem}`),
    ...containers(pod).flatMap((container) =>
      containerProblems(container, pod).map((problem) => `${title(object)}: ${container.name}: ${problem}`),
    ),
  ]);
}

function podProblems(pod: PodSpec): string[] {
  const context = pod.securityContext ?? {};
  return [
    ...(['hostNetwork', 'hostPID', 'hostIPC'] as const)
      .filter((field) => pod[field] === true)
      .map((field) => `${field} is not allowed`),
    ...(pod.volumes ?? []).flatMap((volume) =>
      Object.keys(volume)
        .filter((type) => type !== 'name' && !VOLUMES.includes(type))
        .map((type) => `volumes of type ${type} are not allowed`),
    ),
    ...(context.sysctls ?? [])
      .filter(({ name }) => !SYSCTLS.includes(name))
      .map(({ name }) => `sysctl ${name} is not allowed`),
    ...contextProblems(context),
  ];
}

function containerProblems(container: Container, pod: PodSpec): string[] {
  const context = container.securityContext ?? {};
  const podContext = pod.securityContext ?? {};
  const { add = [], drop = [] } = context.capabilities ?? {};
  const rules: [boolean, string][] = [
    [context.privileged !== true, 'privileged is not allowed'],
    [context.allowPrivilegeEscalation === false, 'allowPrivilegeEscalation must be false'],
    [(context.runAsNonRoot ?? podContext.runAsNonRoot) === true, 'runAsNonRoot must be true'],
    [isConfined(context, podContext), 'seccompProfile must be RuntimeDefault or Localhost'],
    [drop.includes('ALL'), 'capabilities must drop ALL'],
    [add.every((name) => name === 'NET_BIND_SERVICE'), 'only NET_BIND_SERVICE may be added'],
    [(context.procMount ?? 'Default') === 'Default', 'procMount must be Default'],
    [(container.ports ?? []).every(({ hostPort = 0 }) => hostPort === 0), 'hostPort is not allowed'],
    [!hasHostInProbes(container), 'probes and hooks must not name a host'],
  ];
  return [...rules.filter(([holds]) => !holds).map(([, problem]) => problem), ...contextProblems(context)];
}

/** Checks the rules that apply to the security context of a pod and of a container alike. */
function contextProblems(context: Context): string[] {
  const { type: linuxType = '', user = '', role = '' } = context.seLinuxOptions ?? {};
  const rules: [boolean, string][] = [
    [context.windowsOptions?.hostProcess !== true, 'hostProcess is not allowed'],
    [context.runAsUser !== 0, 'runAsUser must not be 0'],
    [context.runAsNonRoot !== false, 'runAsNonRoot must not be false'],
    [SELINUX_TYPES.includes(linuxType), 'seLinuxOptions.type is not allowed'],
    [user === '' && role === '', 'seLinuxOptions.user and role are not allowed'],
    [
      PROFILES.includes(context.appArmorProfile?.type ?? 'RuntimeDefault'),
      'appArmorProfile must not be Unconfined',
    ],
  ];
  return rules.filter(([holds]) => !holds).map(([, problem]) => problem);
}

function isConfined(context: Context, podContext: Context): boolean {
  return PROFILES.includes((context.seccompProfile ?? podContext.seccompProfile)?.type ?? '');
}

function hasHostInProbes(container: Container): boolean {
  const { startupProbe, readinessProbe, livenessProbe, lifecycle } = container;
  // Only httpGet and tcpSocket have the key `host`; the search in JSON finds it at any depth.
  return [startupProbe, readinessProbe, livenessProbe, lifecycle].some((part) =>
    JSON.stringify(part ?? {}).includes('"host":'),
  );
}
