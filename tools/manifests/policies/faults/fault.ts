import { type Fields, type KubernetesObject, title } from '../../kubernetes-object.ts';

/** A mistake in one object of a rendering, for proving that a check sees it. */
export interface Fault {
  readonly what: string;
  /** How the title of the object begins, e.g. `Deployment/auth-service`. */
  readonly object: string;
  /** Where to change: keys with dots in between. */
  readonly at: string;
  readonly change: (fields: Fields) => void;
  /** What the check must say. */
  readonly says: string;
}

/** A row of a table of mistakes. */
export type FaultRow = [what: string, object: string, at: string, change: Fault['change'], says: string];

/** A copy of the objects with the mistake in it. @throws {Error} when there is no such object or place */
export function withFault(objects: readonly KubernetesObject[], fault: Fault): KubernetesObject[] {
  const copy = structuredClone(objects) as KubernetesObject[];
  const object = copy.find((each) => title(each).startsWith(fault.object));
  if (object === undefined) throw new Error(`there is no ${fault.object}`);
  const keys = fault.at === '' ? [] : fault.at.split('.');
  const place = keys.reduce<Fields | undefined>(
    (fields, key) => fields?.[key] as Fields | undefined,
    object as unknown as Fields,
  );
  if (place === undefined) throw new Error(`${fault.object} has no ${fault.at}`);
  fault.change(place);
  return copy;
}
