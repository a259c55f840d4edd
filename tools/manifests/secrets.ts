import { containers, title, workloads } from './kubernetes-object.ts';
import type { Container, KubernetesObject } from './kubernetes-object.ts';
interface ExternalSecretSpec {
  target: { name: string };
  data: { secretKey: string }[];
}

/** Secrets that operators create, so that no ExternalSecret needs to produce them. */
const OPERATOR_SECRETS: readonly string[] = ['rabbitmq-default-user'];
/** Secrets of the roles that own the tables: Jobs may use them, services may not. */
const OWNER_SECRET = /-migration-secrets$/;

/** Names of variables that hold a secret. */
const SECRET_NAME =
  /(SECRET$|PASSWORD$|CREDENTIALS?$|_HEADERS$|^LEGACY_ISSUERS$|_KEYS?$|DATABASE_URL$|^RABBITMQ_\w+_URL$)/;
/** Names that match above, but hold the id or the name of a key. */
const NO_SECRET_NAME = /(_KEY_ID|_APPLICATION_KEY)$/;
/** An address with a literal password in it, not a `$(NAME)` reference. */
const PASSWORD_IN_ADDRESS = /:\/\/[^/@\s]*:(?!\$\()[^/@\s]+@/;
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;
/** Text that looks like 32 or more random bytes in base64. */
const RANDOM_TEXT = /^(?=.*\d)(?=.*[A-Z])(?=.*[a-z])[A-Za-z0-9+/_=-]{40,}$/;

/** Returns the secrets that manifests contain, and the services that use a secret of the tables' owner. */
export function secretProblems(objects: readonly KubernetesObject[]): string[] {
  const secrets = objects.filter(({ kind }) => kind === 'Secret');
  return [
    ...secrets.map((object) => `${title(object)}: secrets are referred to, not written down`),
    ...objects.flatMap((object) =>
      valuesOf(object)
        .filter(isSecret)
        .map(([name]) => `${title(object)}: ${name} holds a secret`),
    ),
    ...ownersSecrets(objects),
  ];
}

/** Returns the keys of secrets that containers require and no ExternalSecret produces. */
export function missingSecretKeys(
  objects: readonly KubernetesObject[],
  externalSecrets: readonly KubernetesObject[],
): string[] {
  const produced = new Set(
    externalSecrets
      .filter(({ kind }) => kind === 'ExternalSecret')
      .map(({ spec }) => spec as ExternalSecretSpec)
      .flatMap(({ target, data }) => data.map(({ secretKey }) => `${target.name}/${secretKey}`)),
  );
  return workloads(objects).flatMap(({ object, pod }) =>
    containers(pod)
      .flatMap(({ env = [] }) => env.flatMap((entry) => requiredKey(entry)))
      .filter((key) => !produced.has(key))
      .map((key) => `${title(object)}: nothing produces ${key}`),
  );
}

function requiredKey({ valueFrom }: NonNullable<Container['env']>[number]): string[] {
  const reference = valueFrom?.secretKeyRef;
  if (reference === undefined || reference.optional === true) return [];
  return OPERATOR_SECRETS.includes(reference.name ?? '') ? [] : [`${reference.name}/${reference.key}`];
}

function valuesOf(object: KubernetesObject): [name: string, value: string][] {
  const data = object.kind === 'ConfigMap' ? (object.data as Record<string, string>) : {};
  const entries = workloads([object]).flatMap(({ pod }) => containers(pod).flatMap(({ env = [] }) => env));
  return [...Object.entries(data), ...entries.map(({ name, value = '' }): [string, string] => [name, value])];
}

function isSecret([name, value]: [string, string]): boolean {
  if (value === '' || /^\$\(|:\/\/\$\(/.test(value)) return false;
  const isNamedSecret = SECRET_NAME.test(name) && !NO_SECRET_NAME.test(name);
  return (
    isNamedSecret || PASSWORD_IN_ADDRESS.test(value) || PRIVATE_KEY.test(value) || RANDOM_TEXT.test(value)
  );
}

function ownersSecrets(objects: readonly KubernetesObject[]): string[] {
  return workloads(objects)
    .filter(({ object }) => object.kind === 'Deployment')
    .flatMap(({ object, pod }) =>
      containers(pod)
        .flatMap(({ env = [] }) => env)
        .filter(({ valueFrom }) => OWNER_SECRET.test(valueFrom?.secretKeyRef?.name ?? ''))
        .map(({ name }) => `${title(object)}: ${name} comes from a secret of the owner of the tables`),
    );
}
