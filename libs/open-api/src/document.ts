import type {
  HeaderObject,
  MediaTypeObject,
  OpenAPIObject,
  OperationObject,
  ParameterObject,
  ReferenceObject,
  RequestBodyObject,
  ResponseObject,
  SchemaObject,
} from '@nestjs/swagger';

export type { HeaderObject, MediaTypeObject, ParameterObject, ResponseObject };

export type Schema = SchemaObject | ReferenceObject;

/** An operation as the documents of this platform have it: named, and nothing referred to but schemas and standard responses. */
export interface Operation extends OperationObject {
  operationId: string;
  parameters?: ParameterObject[];
  requestBody?: RequestBodyObject;
  responses: Record<string, ResponseObject | ReferenceObject>;
}

/** An OpenAPI 3.1 document. */
export interface OpenApiDocument extends OpenAPIObject {
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, Schema>;
    responses: Record<string, ResponseObject>;
    securitySchemes: NonNullable<NonNullable<OpenAPIObject['components']>['securitySchemes']>;
  };
}
