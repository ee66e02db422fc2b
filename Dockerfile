# Small image with the command line, for continuous integration and `--launch kubernetes --image`:
#   docker build --tag minimind .
#   docker run --rm --volume "$PWD:/work" minimind profile model.yaml
ARG NODE=24

FROM node:${NODE}-slim AS package
WORKDIR /source
COPY . .
# npm pack builds. The scripts of a clone would build twice more.
RUN npm ci --ignore-scripts && npm pack --pack-destination /package

FROM node:${NODE}-slim
# ONNX Runtime is the fast engine: --build-arg ENGINE= leaves it out. Of its binaries, only those of this platform stay.
ARG ENGINE=onnxruntime-node@1.30.0
COPY --from=package /package/*.tgz /package/
RUN ONNXRUNTIME_NODE_INSTALL=skip npm install --global --omit=dev /package/*.tgz ${ENGINE} \
    && { [ -z "${ENGINE}" ] || find "$(npm root --global)/onnxruntime-node/bin/napi-v6" -mindepth 2 -maxdepth 2 \
      ! -path "*/$(node -p 'process.platform + "/" + process.arch')" -exec rm -r {} +; } \
    && rm -rf /package /root/.npm
ENV NODE_ENV=production
# Not root; the owner of files that are written to a mounted folder.
USER node
WORKDIR /work
ENTRYPOINT ["minimind"]
CMD ["--help"]
