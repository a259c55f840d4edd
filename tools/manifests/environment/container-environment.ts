import type { Container, KubernetesObject } from '../kubernetes-object.ts';

/** What a container's process finds in its environment. */
export interface ContainerEnvironment {
  readonly variables: Readonly<Record<string, string>>;
  /** Variables that are there only to be put into others. */
  readonly ingredients: ReadonlySet<string>;
}

const REFERENCE = /\$\(([A-Za-z_][A-Za-z0-9_]*)\)/g;

/**
 * The environment of a container as Kubernetes puts it together: `envFrom` in its order, then `env` in its order, where `$(NAME)`
 * stands for a variable that came before.
 * @param secretValue the value of a secret's key, or undefined when it does not exist
 * @throws {Error} for a name twice in `env`, for what is missing and not optional, and for a `$(NAME)` that nothing replaces
 */
export function containerEnvironment(
  container: Container,
  objects: readonly KubernetesObject[],
  secretValue: (secret: string, key: string, variable: string) => string | undefined,
): ContainerEnvironment {
  const variables: Record<string, string> = {};
  const ingredients = new Set<string>();
  for (const { configMapRef, secretRef, prefix } of container.envFrom ?? []) {
    if (configMapRef === undefined || secretRef !== undefined || prefix !== undefined)
      throw new Error(`${container.name}: only ConfigMaps may be taken over whole`);
    Object.assign(variables, configMapData(configMapRef.name, objects));
  }
  const seen = new Set<string>();
  for (const { name, value, valueFrom } of container.env ?? []) {
    if (seen.has(name)) throw new Error(`${container.name}: ${name} is there twice`);
    seen.add(name);
    const text =
      valueFrom === undefined
        ? expand(value ?? '', variables, ingredients, `${container.name}: ${name}`)
        : fromReference(valueFrom, name, objects, secretValue);
    if (text !== undefined) variables[name] = text;
  }
  return { variables, ingredients };
}

function expand(
  value: string,
  variables: Readonly<Record<string, string>>,
  ingredients: Set<string>,
  where: string,
): string {
  return value.replace(REFERENCE, (_, name: string) => {
    const found = variables[name];
    if (found === undefined) throw new Error(`${where}: there is no ${name} before it`);
    ingredients.add(name);
    return found;
  });
}

function fromReference(
  { secretKeyRef, configMapKeyRef }: NonNullable<NonNullable<Container['env']>[number]['valueFrom']>,
  variable: string,
  objects: readonly KubernetesObject[],
  secretValue: (secret: string, key: string, variable: string) => string | undefined,
): string | undefined {
  const reference = secretKeyRef ?? configMapKeyRef;
  if (reference === undefined) throw new Error(`${variable}: an unknown kind of reference`);
  const { name, key, optional = false } = reference;
  const value = secretKeyRef ? secretValue(name, key, variable) : configMapData(name, objects)[key];
  if (value === undefined && !optional) throw new Error(`${variable}: there is no ${key} in ${name}`);
  return value;
}

function configMapData(name: string, objects: readonly KubernetesObject[]): Record<string, string> {
  const found = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name);
  if (found === undefined) throw new Error(`there is no ConfigMap ${name}`);
  return found.data as Record<string, string>;
}
