# Small image with the command line, for continuous integration and `--launch kubernetes --image`:
#   docker build --tag minimind .
#   docker run --rm --volume "$PWD:/work" minimind profile model.yaml
ARG NODE=24

FROM node:${NODE}-slim AS package
WORKDIR /source
COPY . .
RUN npm ci && npm run build && npm pack --pack-destination /package

FROM node:${NODE}-slim
# ONNX Runtime is the fast engine: --build-arg ENGINE= leaves it out and saves 290 MB.
ARG ENGINE=onnxruntime-node@1.30.0
COPY --from=package /package/*.tgz /package/
RUN ONNXRUNTIME_NODE_INSTALL=skip npm install --global --omit=dev /package/*.tgz ${ENGINE} \
    && rm -rf /package /root/.npm
ENV NODE_ENV=production
# Not root; the owner of files that are written to a mounted folder.
USER node
WORKDIR /work
ENTRYPOINT ["minimind"]
CMD ["--help"]
